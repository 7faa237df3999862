"""Causes that the lab's machine cannot make: scenes from counters as documented, with what they cost and without."""

import math
from collections.abc import Callable
from itertools import product

import pytest

from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import explain

Draw = Callable[..., Segments]
IDLE = {"compute": 0.070}
RUNS = {"compute": 0.070, "cpu_user": 0.068}
KERNEL = {"compute": 0.070, "cpu_system": 0.031}
FABRIC = {"fabric": 0.034}
INPUT = {"input": 0.031}
# What the phases look like, and the evidence of 30 ms a step, or of a count.
SCENES = [
    ("cpu_steal", IDLE, {"stolen": 0.030}),
    ("swap", IDLE, {"swapped_in": 500.0, "memory_stalled": 0.030}),
    ("swap", IDLE, {"swapped_in": 500.0, "memory_stalled": 0.500}),
    ("major_faults", IDLE, {"major_faults": 8.0}),
    ("memory_pressure", IDLE, {"memory_stalled": 0.030}),
    ("memory_pressure", KERNEL, {"memory_stalled": 0.030}),
    ("heat_throttling", RUNS, {"heat_throttled": 0.030}),
    ("power_cap", IDLE, {"power_throttled": 0.030}),
    ("low_clock", RUNS, {"clock_lost": 0.030}),
    ("slow_storage", INPUT, {"io_stalled": 0.030}),
    ("busy_loaders", INPUT, {"cpu_waited": 0.030}),
    ("recompilation", RUNS, {"recompiled": 0.030}),
    ("uneven_work", RUNS, {"uneven": 0.030}),
    ("slow_node", RUNS, {"slow_node": 0.030}),
    ("software_change", RUNS, {"software_compute": 0.030}),
    ("software_change", FABRIC, {"software_fabric": 0.030}),
    ("placement", FABRIC, {"placement_fabric": 0.030}),
    ("neighbour_traffic", FABRIC, {"link_busy": 0.030}),
    ("retransmission", FABRIC, {"retransmits": 40.0}),
    ("retransmission", FABRIC, {"retries": 3.0}),
    ("congestion", FABRIC, {"pauses": 200.0}),
    ("congestion", FABRIC, {"marks": 200.0}),
    ("congestion", FABRIC, {"port_waits": 1e6}),
    ("congestion", FABRIC, {"backlog": 4e5}),
]
each_scene = pytest.mark.parametrize(("cause", "phases", "evidence"), SCENES)


def share(explanation: Explanation, cause: str) -> float:
    """Seconds a step."""
    return sum(part.seconds.value for part in explanation.shares if part.cause == cause) / explanation.steps


@each_scene
def test_a_cause_whose_evidence_grows_with_the_phase_is_named(
    drawn: Draw, cohort: list[Segments], cause: str, phases: dict[str, float], evidence: dict[str, float]
) -> None:
    explanation = explain("r", drawn(99, **phases, **evidence), cohort)
    assert (explanation.verdict, explanation.cause) == (Verdict.SLOW, cause)
    assert share(explanation, cause) == pytest.approx(0.030, rel=0.05)
    [text] = [part.evidence for part in explanation.shares if part.cause == cause]
    assert "expected" in text
    assert explanation.next_action == next(candidate.next_action for candidate in CAUSES if candidate.name == cause)


@each_scene
def test_evidence_that_cost_nothing_claims_nothing(
    drawn: Draw, cohort: list[Segments], cause: str, phases: dict[str, float], evidence: dict[str, float]
) -> None:
    explanation = explain("r", drawn(99, **evidence), cohort)
    assert explanation.verdict is Verdict.NORMAL
    assert share(explanation, cause) < 0.0005  # what compute happens to differ by
    # The same evidence with another phase's excess.
    elsewhere = explain("r", drawn(99, checkpoint=0.030, **evidence), cohort)
    assert elsewhere.cause == "slow_checkpoint"
    assert share(elsewhere, cause) < 0.0005


@each_scene
def test_what_was_not_sampled_claims_nothing_and_is_not_taken_as_nothing(
    drawn: Draw, cohort: list[Segments], cause: str, phases: dict[str, float], evidence: dict[str, float]
) -> None:
    unknown = dict.fromkeys(evidence, math.nan)
    assert share(explain("r", drawn(99, **phases, **unknown), cohort), cause) == 0
    # Nothing shows the usual value: the whole evidence is no excess.
    unsampled = [drawn(seed, **unknown) for seed in range(1, 9)]
    explanation = explain("r", drawn(99, **phases, **evidence), unsampled)
    assert share(explanation, cause) == 0
    assert explanation.verdict is Verdict.SLOW


PLACED = [scene for scene in SCENES if scene[1] is not INPUT and all(value < 1 for value in scene[2].values())]


@pytest.mark.parametrize(("cause", "phases", "evidence"), PLACED)
def test_seconds_claim_no_more_than_they_are(
    drawn: Draw, cohort: list[Segments], cause: str, phases: dict[str, float], evidence: dict[str, float]
) -> None:
    half = {name: value / 2 for name, value in evidence.items()}
    explanation = explain("r", drawn(99, **phases, **half), cohort)
    assert share(explanation, cause) == pytest.approx(0.015, rel=0.05)


@pytest.mark.parametrize("column", ["io_stalled", "cpu_waited"])
def test_waiting_that_does_not_fill_the_phase_leaves_it_to_the_source(
    drawn: Draw, cohort: list[Segments], column: str
) -> None:
    assert explain("r", drawn(99, **INPUT, **{column: 0.010}), cohort).cause == "slow_input"


@pytest.mark.parametrize(
    ("evidence", "named"),
    [
        ({"heat_throttled": 0.030, "run_queue_wait": 0.031}, "cpu_contention"),
        ({"memory_stalled": 0.030, "cpu_user": 0.068}, "slow_compute"),  # tasks waited, but its own ran
        ({"swapped_in": 500.0, "cpu_user": 0.068}, "slow_compute"),
        ({"major_faults": 8.0, "cpu_user": 0.068}, "slow_compute"),
    ],
)
def test_time_that_the_thread_spent_otherwise_is_not_claimed(
    drawn: Draw, cohort: list[Segments], evidence: dict[str, float], named: str
) -> None:
    assert explain("r", drawn(99, **IDLE, **evidence), cohort).cause == named


def test_cores_that_the_hypervisor_took_share_the_wait_for_a_core_with_the_guests_own_threads(
    drawn: Draw, cohort: list[Segments]
) -> None:
    explanation = explain("r", drawn(99, **IDLE, stolen=0.030, run_queue_wait=0.031), cohort)
    assert share(explanation, "cpu_steal") == pytest.approx(share(explanation, "cpu_contention"), rel=0.05)
    little = explain("r", drawn(99, **IDLE, stolen=0.003, run_queue_wait=0.031), cohort)
    assert little.cause == "cpu_contention"


@pytest.mark.parametrize("fabric", [0.004, 0.034])
def test_stolen_time_is_not_taken_for_a_stopped_process_or_a_slow_network(
    drawn: Draw, cohort: list[Segments], fabric: float
) -> None:
    stolen = {"compute": 0.050, "stalled": 0.010, "fabric": fabric, "stolen": fabric + 0.008}
    explanation = explain("r", drawn(99, **stolen), cohort)
    assert (explanation.verdict, explanation.cause) == (Verdict.SLOW, "cpu_steal")
    assert not {"stall", "network"} & {explanation.cause, *explanation.also}


def test_few_more_counts_than_usual_speak_for_nothing(drawn: Draw, cohort: list[Segments]) -> None:
    few = {
        "retransmits": 0.5,
        "retries": 0.05,
        "pauses": 0.5,
        "marks": 0.5,
        "port_waits": 500.0,
        "link_busy": 0.0004,
        "backlog": 6e4,
    }
    explanation = explain("r", drawn(99, **FABRIC, **few), cohort)
    assert explanation.cause == "network"
    # Where runs differ by as much anyhow, more is needed.
    noisy = [drawn(seed, retransmits=20.0 * seed) for seed in range(1, 9)]
    assert explain("r", drawn(99, **FABRIC, retransmits=200.0), noisy).cause == "network"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"overlimits": 300.0}, {"retransmits": 40.0, "pauses": 200.0}),
        ({"out_of_order": 40.0}, {"retransmits": 40.0, "marks": 200.0}),
    ],
)
def test_a_capped_or_lossy_link_is_not_called_congested(
    drawn: Draw, cohort: list[Segments], first: dict[str, float], second: dict[str, float]
) -> None:
    named = explain("r", drawn(99, **FABRIC, **first), cohort).cause
    assert named in ("link_rate", "packet_loss")
    assert explain("r", drawn(99, **FABRIC, **first, **second), cohort).cause == named


def test_every_cause_has_a_scene_here_or_among_the_first_ones() -> None:
    first = {"slow_input", "slow_checkpoint", "other_work", "cpu_quota", "cpu_contention", "packet_loss", "stall"}
    first |= {"memory_traffic", "slow_compute", "link_rate", "network"}
    assert {cause.name for cause in CAUSES} == first | {name for name, _, _ in SCENES}


def test_no_two_causes_ask_for_the_same() -> None:
    for one, other in product(CAUSES, CAUSES):
        assert one is other or one.next_action != other.next_action
