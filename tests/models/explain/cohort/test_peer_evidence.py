"""Times that runs with the same software, or spread over nodes alike, take."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import pytest
from tests.models.explain.drawn_segments import compared_runs

from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.models.explain.cohort.columns import COLUMNS, RUNS_ALIKE
from crosswind.models.explain.cohort.peer_evidence import seconds_of_runs_alike
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import explain

Draw = Callable[..., Segments]
Seconds = dict[tuple[str, str], float]


def run(number: int, *, torch: str = "2.6", batch: int = 8) -> Run:
    software = {"torch": torch, "python": "3.11"}
    return Run(f"run-{number}", "w", "s", RunState.COMPLETED, 2, {"batch": batch}, software=software)


def alike_seconds(
    runs: list[Run], segments: list[Segments], ranks: list[Rank], switches: Mapping[str, str] = MappingProxyType({})
) -> Seconds:
    compared = compared_runs(runs, segments, ranks, switches)
    return {
        (run_id, column): seconds
        for alike in RUNS_ALIKE
        for run_id, by_column in seconds_of_runs_alike(alike, compared)
        for column, seconds in by_column.items()
    }


def test_a_run_has_the_time_of_the_others_of_its_software(drawn: Draw) -> None:
    runs = [run(number, torch="2.7" if number >= 8 else "2.6") for number in range(13)]
    segments = [drawn(number, compute=0.060 if number >= 8 else 0.040) for number in range(12)]
    seconds = alike_seconds(runs, [*segments, drawn(12, compute=9.0)], [])
    assert seconds["run-12", "software_compute"] == pytest.approx(0.060, rel=0.01)  # its own time is none of it
    assert seconds["run-3", "software_compute"] == pytest.approx(0.040, rel=0.01)
    assert seconds["run-9", "software_fabric"] == pytest.approx(0.004)
    assert {column for _, column in seconds} == {"software_compute", "software_fabric"}


def test_a_cohort_of_one_software_or_few_runs_of_another_gives_nothing(drawn: Draw) -> None:
    segments = [drawn(number) for number in range(9)]
    assert alike_seconds([run(number) for number in range(9)], segments, []) == {}
    few = alike_seconds([run(number, torch="2.7" if number > 5 else "2.6") for number in range(9)], segments, [])
    assert ("run-8", "software_compute") not in few  # two others of its software
    assert ("run-0", "software_compute") in few
    fewer = alike_seconds([run(number, torch="2.7" if number > 6 else "2.6") for number in range(9)], segments, [])
    assert fewer == {}
    of_two_cohorts = [run(number, torch="2.7" if number > 3 else "2.6", batch=number // 4) for number in range(9)]
    assert alike_seconds(of_two_cohorts, segments, []) == {}


def test_runs_are_placed_alike_where_as_many_ranks_share_a_node(drawn: Draw) -> None:
    runs = [run(number) for number in range(8)]
    ranks = [
        Rank(placed_run.run_id, rank, f"n{rank if number < 4 else 0}-{number}", 7, 0)
        for number, placed_run in enumerate(runs)
        for rank in range(2)
    ]
    segments = [drawn(number, fabric=0.004 if number < 4 else 0.020) for number in range(8)]
    seconds = alike_seconds(runs, segments, ranks)
    assert seconds["run-0", "placement_fabric"] == pytest.approx(0.004)
    assert seconds["run-7", "placement_fabric"] == pytest.approx(0.020)
    assert not any(column.startswith("software") for _, column in seconds)


def test_runs_are_placed_alike_where_as_many_ranks_hang_on_a_switch(drawn: Draw) -> None:
    runs = [run(number) for number in range(8)]
    ranks = [
        Rank(placed_run.run_id, rank, f"n{rank if number < 4 else 2 * rank}", 7, 0)
        for number, placed_run in enumerate(runs)
        for rank in range(2)
    ]
    segments = [drawn(number, fabric=0.004 if number < 4 else 0.020) for number in range(8)]
    switches = {"n0": "s0", "n1": "s0", "n2": "s1"}
    assert alike_seconds(runs, segments, ranks) == {}  # two nodes each
    assert alike_seconds(runs, segments, ranks, {"n0": "s0", "n1": "s0"}) == {}  # where n2 hangs, nobody knows
    seconds = alike_seconds(runs, segments, ranks, switches)
    assert seconds["run-0", "placement_fabric"] == pytest.approx(0.004)
    assert seconds["run-7", "placement_fabric"] == pytest.approx(0.020)


def test_runs_of_unknown_placement_or_software_are_alike_in_nothing(drawn: Draw) -> None:
    runs = [Run(f"run-{number}", "w", "s", RunState.COMPLETED, 2) for number in range(8)]
    runs = [*runs[:4], *(run(number) for number in range(4, 8))]
    runs = [Run(source.run_id, "w", "s", RunState.COMPLETED, 2, software=source.software) for source in runs]
    seconds = alike_seconds(runs, [drawn(number) for number in range(8)], [])
    assert {run_id for run_id, _ in seconds} == {f"run-{number}" for number in range(4, 8)}


def test_a_new_version_that_slows_all_its_runs_is_named(drawn: Draw) -> None:
    runs = [run(number, torch="2.7" if number >= 8 else "2.6") for number in range(13)]
    slow = {"compute": 0.060, "cpu_user": 0.058}
    segments = [drawn(number, **(slow if number >= 8 else {})) for number in range(13)]
    for run_segments in segments:
        for name in COLUMNS:
            if name.startswith(("software", "placement")):
                run_segments.values[:, COLUMNS.index(name)] = math.nan
    for (run_id, column), seconds in alike_seconds(runs, segments, []).items():
        np.copyto(segments[int(run_id.removeprefix("run-"))].values[:, COLUMNS.index(column)], seconds)
    explanation = explain("run-12", segments[12], segments[:12])
    assert explanation.cause == "software_change"
    assert explanation.shares[0].seconds.value / explanation.steps == pytest.approx(0.020, rel=0.05)
    assert explain("run-3", segments[3], [*segments[:3], *segments[4:]]).cause is None
