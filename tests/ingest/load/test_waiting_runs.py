"""Runs that wait to be stored: many of them in a file rather than in memory."""

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.load.waiting_runs import WaitingRuns

FACTS = Facts(accelerator="H100", node_count=2)


def test_runs_come_back_as_they_were_in_their_order() -> None:
    runs = [
        Run(
            f"r{number}",
            "w\n",
            "here",
            RunState.FAILED,
            8,
            {"a": 1, "b": "x"},
            nodes=("n1", "n2"),
            tags={"t": "ü"},
            facts=FACTS,
        )
        for number in range(5)
    ]
    waiting = WaitingRuns(in_memory=2)
    for run in runs:
        waiting.add(run)
    try:
        assert (list(waiting), list(waiting)) == (runs, runs)
        assert (len(waiting), waiting.ids) == (5, {run.run_id for run in runs})
    finally:
        waiting.close()
