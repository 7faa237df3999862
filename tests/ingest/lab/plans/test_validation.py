import pytest

from crosswind.ingest.lab.injectors import INJECTORS
from crosswind.ingest.lab.plans import PLANS, SEEDS
from crosswind.ingest.lab.plans.plan import PASSING, PlannedRun
from crosswind.ingest.lab.plans.validation import HEALTHY, PAIRS, validation

PLAN = validation(7)


def with_faults(count: int) -> list[PlannedRun]:
    return [run for run in PLAN.runs if len(run.faults) == count]


def test_each_cohort_has_healthy_runs_and_each_pair_of_faults_once() -> None:
    for cohort in PLAN.cohorts():
        assert sum(run.cohort == cohort for run in with_faults(0)) == HEALTHY
        pairs = {tuple(fault.kind for fault in run.faults) for run in with_faults(2) if run.cohort == cohort}
        assert pairs == set(PAIRS)


def test_each_single_fault_has_two_strengths_but_the_one_that_cannot_be_weak() -> None:
    for cohort in PLAN.cohorts():
        faults = [run.faults[0] for run in with_faults(1) if run.cohort == cohort]
        strengths = {
            kind: {fault.strength for fault in faults if fault.kind == kind} for kind in {f.kind for f in faults}
        }
        assert {kind for kind, distinct in strengths.items() if len(distinct) < 2} == {"memory_traffic"}


def test_every_fault_can_be_injected_where_it_is_planned() -> None:
    for run in PLAN.runs:
        for fault in run.faults:
            assert fault.kind in INJECTORS
            assert fault.rank < run.cohort.world_size
            assert (fault.begin is None) == (fault.kind not in PASSING and fault.end is None)


def test_another_seed_is_another_order_with_a_name_of_its_own() -> None:
    assert validation(7) == PLAN
    assert validation(8).name != PLAN.name
    assert [run.faults for run in validation(8).runs] != [run.faults for run in PLAN.runs]


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_has_a_seed_that_names_it(name: str) -> None:
    assert PLANS[name](SEEDS[name]).name == f"{name}-{SEEDS[name]}"
