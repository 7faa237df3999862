"""Questions about systems, their nodes and stored metrics: to a store of this machine, or to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crosswind.client.http import segment
from crosswind.data.schema import answers
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.node_question import HistoryQuestion
from crosswind.data.schema.question import RANKED_RUNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosswind.client.answers import Answers
    from crosswind.client.compute import Compute
    from crosswind.data.schema.answers.nodes import NodeHistory, NodeReport
    from crosswind.data.schema.answers.series import SeriesAnswer, StoredMetric
    from crosswind.data.schema.answers.stragglers import PeerRanking
    from crosswind.data.schema.answers.systems import ListedSystem, SystemReport
    from crosswind.data.schema.series_question import SeriesQuestion
    from crosswind.data.store.store import Store
LAST_WEEK = HistoryQuestion()


class Fleet(Protocol):
    """Systems, their nodes and stored metrics; raises as `Client` does."""

    def metrics(self) -> tuple[StoredMetric, ...]:
        """The metrics that samples are stored of, by name."""
        ...

    def series(self, question: SeriesQuestion) -> SeriesAnswer:
        """The course of metrics of nodes, a job or runs over time."""
        ...

    def systems(self) -> tuple[ListedSystem, ...]:
        """The systems that runs or jobs are stored of, by name."""
        ...

    def system(self, system: str) -> SystemReport:
        """One system: its workloads and nodes."""
        ...

    def node(self, node: str) -> NodeReport:
        """One node as it is now."""
        ...

    def node_history(self, node: str, question: HistoryQuestion = LAST_WEEK) -> NodeHistory:
        """One node over a time: its jobs, runs and checks, its place among stragglers, gaps in its samples."""
        ...


@dataclass(frozen=True)
class LocalFleet:
    """The `Fleet` of a store."""

    store: Store
    compute: Compute

    def metrics(self) -> tuple[StoredMetric, ...]:
        """As `Fleet.metrics`."""
        from crosswind.data.store.metrics.stored import stored_metrics  # noqa: PLC0415 - heavy

        return stored_metrics(self.store.lake)

    def series(self, question: SeriesQuestion) -> SeriesAnswer:
        """As `Fleet.series`."""
        from crosswind.data.store.metrics.series import series  # noqa: PLC0415 - heavy

        return series(self.store, question)

    def systems(self) -> tuple[ListedSystem, ...]:
        """As `Fleet.systems`."""
        return tuple(report.system for report in self._systems())

    def system(self, system: str) -> SystemReport:
        """As `Fleet.system`."""
        from crosswind.models.reports.systems import system_named  # noqa: PLC0415 - heavy

        return system_named(self._systems(), system)

    def _systems(self) -> Sequence[SystemReport]:
        from crosswind.models.reports.systems import systems  # noqa: PLC0415 - heavy

        return self.compute(self.store, systems)

    def node(self, node: str) -> NodeReport:
        """As `Fleet.node`."""
        from crosswind.models.reports.node_report import node_report  # noqa: PLC0415 - heavy

        return node_report(self.store, node)

    def node_history(self, node: str, question: HistoryQuestion = LAST_WEEK) -> NodeHistory:
        """As `Fleet.node_history`."""
        from crosswind.models.reports.node_report import node_history  # noqa: PLC0415 - heavy
        from crosswind.models.stragglers.fleet import fleet_ranking  # noqa: PLC0415 - heavy

        def rank(system: str) -> PeerRanking:
            return self.compute(self.store, fleet_ranking, system, None, runs=RANKED_RUNS)

        return node_history(self.store, node, question, rank)


@dataclass(frozen=True)
class RemoteFleet:
    """The `Fleet` of a server."""

    answers: Answers

    def metrics(self) -> tuple[StoredMetric, ...]:
        """As GET /v1/metrics."""
        return self.answers.rows(answers.series.StoredMetric, "/v1/metrics", {}, None)

    def series(self, question: SeriesQuestion) -> SeriesAnswer:
        """As GET /v1/series."""
        return self.answers.get(answers.series.SeriesAnswer, "/v1/series", **_query(question))

    def systems(self) -> tuple[ListedSystem, ...]:
        """As GET /v1/systems."""
        return self.answers.rows(answers.systems.ListedSystem, "/v1/systems", {}, None)

    def system(self, system: str) -> SystemReport:
        """As GET /v1/systems/{system}."""
        return self.answers.get(answers.systems.SystemReport, f"/v1/systems/{segment(system)}")

    def node(self, node: str) -> NodeReport:
        """As GET /v1/nodes/{node}."""
        return self.answers.get(answers.nodes.NodeReport, f"/v1/nodes/{segment(node)}")

    def node_history(self, node: str, question: HistoryQuestion = LAST_WEEK) -> NodeHistory:
        """As GET /v1/nodes/{node}/history."""
        times = {"from": rfc3339(question.from_ns), "to": rfc3339(question.to_ns)}
        path = f"/v1/nodes/{segment(node)}/history"
        return self.answers.get(answers.nodes.NodeHistory, path, **times, limit=question.limit)


def _query(question: SeriesQuestion) -> dict[str, object | None]:
    """Return the parameters of a question; `by` may be empty, which means all together."""
    return {
        "metric": ",".join(question.metrics),
        "node": ",".join(question.nodes) or None,
        "job": question.job,
        "system": question.system,
        "run": ",".join(question.runs) or None,
        "from": rfc3339(question.from_ns),
        "to": rfc3339(question.to_ns),
        "step": None if question.step_seconds is None else f"{question.step_seconds:.9f}",
        "statistic": ",".join(question.statistics) or None,
        "by": None if question.by is None else ",".join(question.by) or "none",
        "points": question.points,
        "limit": question.limit,
        "device": ",".join(question.devices) or None,
    }
