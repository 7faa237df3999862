from collections import Counter

import pytest

from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.lab.campaign import missing
from crosswind.ingest.lab.injectors import INJECTORS
from crosswind.ingest.lab.plans.plan import COHORTS, RELAYED_COHORT, STEPS, PlannedFault, PlannedRun, quick, samples
from crosswind.ingest.lab.workers.order import STEPS_A_CHECKPOINT

SAMPLES = samples()
FAULTY = [run for run in SAMPLES.runs if run.faults]


def kinds(runs: list[PlannedRun]) -> set[str]:
    return {fault.kind for run in runs for fault in run.faults}


def test_a_plan_is_the_same_every_time_and_another_with_another_seed() -> None:
    assert samples() == SAMPLES
    assert samples(seed=2).runs != SAMPLES.runs


def test_there_are_enough_runs_to_learn_from() -> None:
    assert len(SAMPLES.runs) >= 420
    assert [run.number for run in SAMPLES.runs] == list(range(len(SAMPLES.runs)))


@pytest.mark.parametrize("cohort", COHORTS)
def test_every_cohort_is_measured_healthy_and_under_every_fault_that_its_links_allow(cohort: object) -> None:
    runs = [run for run in SAMPLES.runs if run.cohort == cohort]
    assert kinds(runs) == set(INJECTORS) - {"latency"}
    assert sum(not run.faults and not run.neighbour for run in runs) >= 10
    assert sum(run.neighbour is not None for run in runs) >= 3


def test_latency_is_injected_where_there_is_a_wire() -> None:
    assert {run.cohort for run in FAULTY if run.faults[0].kind == "latency"} == {RELAYED_COHORT}


@pytest.mark.parametrize("kind", sorted(set(INJECTORS) - {"pause"}))
def test_about_half_of_every_kind_is_there_before_the_run(kind: str) -> None:
    begins = [fault.begin for run in FAULTY for fault in run.faults if fault.kind == kind]
    assert 0.3 <= sum(begin is None for begin in begins) / len(begins) <= 0.75


def test_some_faults_end_before_the_run_does() -> None:
    ends = [fault.end for run in FAULTY for fault in run.faults if fault.begin is not None]
    assert 0.2 <= sum(end is not None for end in ends) / len(ends) <= 0.6


def test_a_checkpoint_comes_within_every_fault_of_checkpoints() -> None:
    faults = [fault for run in FAULTY for fault in run.faults if fault.kind == "late_checkpoint"]
    assert {fault.end for fault in faults} == {None}
    assert all((fault.begin or 0.0) * STEPS <= STEPS - STEPS_A_CHECKPOINT for fault in faults)


def test_every_fault_can_be_injected() -> None:
    injections = [(run, run.injection(fault)) for run in SAMPLES.runs for fault in run.faults]
    assert len(injections) == len(FAULTY)
    assert all(injection.host in run.cohort.hosts for run, injection in injections)


def test_the_split_follows_the_order() -> None:
    count = len(SAMPLES.runs)
    splits = [run.split for run in SAMPLES.runs]
    assert splits == sorted(splits, key=["train", "calibrate", "test"].index)
    assert [round(splits.count(name) / count, 2) for name in ("train", "calibrate", "test")] == [0.5, 0.2, 0.3]


def test_conditions_are_spread_over_the_whole_order() -> None:
    third = len(SAMPLES.runs) // 3
    parts = [Counter(run.cohort for run in SAMPLES.runs[begin : begin + third]) for begin in (0, third, 2 * third)]
    assert all(set(part) == set(SAMPLES.cohorts()) for part in parts)
    assert all(kinds(list(SAMPLES.runs[begin : begin + third])) == set(INJECTORS) for begin in (0, third, 2 * third))


def test_shares_of_the_run_become_steps() -> None:
    fault = PlannedFault("slow_rank", 40.0, rank=0, begin=0.5, end=0.81)
    run = PlannedRun(0, COHORTS[0], (fault, PlannedFault("cpu_hog", 2.0, rank=1)), None, "", 0, steps=60)
    assert run.marks() == (30, 49)
    assert [planned.words(60) for planned in run.faults] == ["slow_rank:0:40 from step 30 to step 49", "cpu_hog:1:2"]


def test_ranks_go_round_the_hosts_of_their_cohort() -> None:
    assert COHORTS[2].places() == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert RELAYED_COHORT.places() == [(0, 0), (3, 0)]


def test_what_has_ended_in_the_store_is_not_measured_again() -> None:
    plan = quick()

    def stored(number: int, state: RunState, name: str = plan.name) -> Run:
        tags = {"plan": name, "position": f"{number:04d}"}
        return Run(f"r{number}", "byte-transformer", "fault-lab", state, tags=tags)

    there = [stored(0, RunState.COMPLETED), stored(1, RunState.FAILED), stored(2, RunState.LOST)]
    there += [stored(3, RunState.COMPLETED, "samples-1"), Run("r9", "toy", "lab", RunState.COMPLETED)]
    assert [run.number for run in missing(plan, there)] == [2, 3, 4, 5, 6, 7]
