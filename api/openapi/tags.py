"""The groups of operations, in the order in which a reader meets them."""

from collections.abc import Mapping

TAGS: Mapping[str, str] = {
    "runs": "Runs, their steps and how long one in progress will still take.",
    "explain": "Causes of slow runs: counters, neighbours, and ranks that wait for each other.",
    "stragglers": "Nodes, devices and ranks slower than their peers, and workloads that became slower for good.",
    "traces": "Traces of runs' ranks: where their time goes, and which rank the others wait for.",
    "predictions": "How long future runs will take, as quantiles. Nothing is stored.",
    "advice": "Time limits, numbers of nodes, and shares of a batch. Nothing is stored.",
    "weather": "How slow a system is now and in the next hours.",
    "cohorts": "Sets of runs that are kept under a name, and how they differ from the others.",
    "sql": "Questions in SQL over the rows that the caller may see.",
    "jobs": "Jobs of the scheduler, and the nodes that they had.",
    "nodes": "Nodes that send samples, and the state of their agents.",
    "systems": "Systems, and what is stored of each.",
    "series": "Stored metrics, and their course over time.",
    "checks": "Measurements of nodes before their jobs.",
    "studies": "Searches for the best configuration.",
    "trials": "Configurations of a study: handed out under leases, and their outcomes.",
    "models": "Trained models: their versions, their accuracy, and which one answers.",
    "operations": "Long work that goes on after a request was answered.",
    "events": "New runs, their progress, ends and verdicts, and trials: as a list, or as a stream as they come.",
    "webhooks": "Addresses that events are sent to.",
    "ingest": "Measurements, sent here to be stored exactly once.",
    "access": "Runs and studies of one's own: sharing, exporting and deleting them; the audit trail.",
    "tokens": "Tokens of people, jobs, agents and services.",
    "health": "The server's own state.",
}
