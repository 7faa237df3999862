"""Meetings of runs and their neighbours: where, and for how much of a run."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.run import Run, RunState
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.interference.overlap import Spans, meetings_in_groups, meetings_on_nodes, overlaps

SECOND = 10**9
Stays = list[tuple[int, int, int]]
STAYS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 12)), max_size=12)


def spans(stays: Stays) -> Spans:
    columns = np.array(stays, dtype=np.int64).reshape(-1, 3)
    return Spans.of(columns[:, 0], columns[:, 1], columns[:, 1] + columns[:, 2])


@given(STAYS, STAYS)
def test_every_overlap_is_found_once(mine: Stays, others: Stays) -> None:
    overlapping = sorted(zip(*(part.tolist() for part in overlaps(spans(mine), spans(others))), strict=True))
    expected = [
        (number, other, min(begin + length, start + lasts) - max(begin, start))
        for number, (place, begin, length) in enumerate(mine)
        for other, (where, start, lasts) in enumerate(others)
        if place == where and min(begin + length, start + lasts) > max(begin, start)
    ]
    assert overlapping == expected


def run(run_id: str, nodes: tuple[str, ...], begin: float, seconds: float, job_id: str | None = None) -> Run:
    began, ended = int(begin * SECOND), int((begin + seconds) * SECOND)
    return Run(run_id, "w", "s", RunState.COMPLETED, nodes=nodes, started_ns=began, ended_ns=ended, job_id=job_id)


def compared(*runs: Run, log_excess: Any = None) -> Outcomes:
    excess = np.zeros(len(runs)) if log_excess is None else np.asarray(log_excess, np.float64)
    return Outcomes("s", None, runs, excess, np.zeros(len(runs), np.int64), len(runs))


def present(*rows: tuple[str, float, float], run_id: str | None = None, job_id: str | None = None) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["node", "begin_ns", "end_ns"])
    times = {name: (table[name] * SECOND).astype("int64") for name in ("begin_ns", "end_ns")}
    return table.assign(**times, run_id=pd.Series([run_id] * len(rows), dtype=object)).assign(
        job_id=pd.Series([job_id] * len(rows), dtype=object)
    )


def shares(meetings: pd.DataFrame) -> list[tuple[int, int, float]]:
    return [(row.run, row.presence, round(row.share, 6)) for row in meetings.itertuples()]  # type: ignore[misc]


def test_share_is_of_time_and_of_nodes() -> None:
    runs = compared(run("r", ("n1", "n2"), 0, 100))
    assert shares(meetings_on_nodes(runs, present(("n1", 0, 90), ("n2", 45, 500), ("n3", 0, 90)))) == [
        (0, 0, 0.5),
        (0, 1, 0.25),
    ]


def test_a_slow_run_does_not_meet_more_people_for_being_slow() -> None:
    """The run took twice its usual 100 s; who came after 90 s does not count, as of any other run of its cohort."""
    runs = compared(run("r", ("n1",), 0, 200), log_excess=[np.log(2)])
    assert shares(meetings_on_nodes(runs, present(("n1", 95, 200), ("n1", 0, 45)))) == [(0, 1, 0.5)]


def test_neither_the_run_nor_its_job_is_a_neighbour() -> None:
    runs = compared(run("r", ("n1",), 0, 100, job_id="7"))
    for own in ({"run_id": "r"}, {"job_id": "7"}):
        assert shares(meetings_on_nodes(runs, present(("n1", 0, 90), **own))) == []  # type: ignore[arg-type]
    assert len(meetings_on_nodes(runs, present(("n1", 0, 90), job_id="8"))) == 1


def test_of_a_switch_count_those_on_other_nodes_of_it() -> None:
    groups = {"n1": "s1", "n2": "s1", "n3": "s1", "n4": "s1", "n5": "s2"}
    runs = compared(run("r", ("n1", "n5"), 0, 100))
    meetings = meetings_in_groups(runs, present(("n1", 0, 90), ("n2", 0, 90), ("n4", 0, 45), ("n9", 0, 90)), groups)
    assert shares(meetings) == [(0, 1, 0.125), (0, 2, 0.0625)]  # half of the run's nodes, one node of four


@pytest.mark.parametrize("rows", [[], [("n9", 0.0, 90.0)]])
def test_nobody_beside_is_no_meeting(rows: list[tuple[str, float, float]]) -> None:
    runs = compared(run("r", ("n1",), 0, 100))
    assert shares(meetings_on_nodes(runs, present(*rows))) == []
    assert shares(meetings_in_groups(runs, present(*rows), {"n1": "s1"})) == []
