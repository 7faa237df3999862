from collections import Counter

from crosswind.ingest.lab.injectors import INJECTORS
from crosswind.ingest.lab.plans.captures import COHORTS, HEALTHY, STRENGTHS, captures

PLAN = captures(7)


def test_every_kind_disturbs_every_rank_once_in_each_cohort() -> None:
    faults = Counter((run.cohort, fault.kind, fault.rank) for run in PLAN.runs for fault in run.faults)
    expected = {(cohort, kind, rank) for cohort in COHORTS for kind in STRENGTHS for rank in range(4)}
    assert faults == dict.fromkeys(expected, 1)
    assert sum(not run.faults for run in PLAN.runs) == len(COHORTS) * HEALTHY


def test_strengths_are_possible_and_half_of_the_faults_that_last_begin_in_the_middle() -> None:
    faults = [fault for run in PLAN.runs for fault in run.faults]
    for fault in faults:
        low, high = INJECTORS[fault.kind].limits
        assert low <= fault.strength <= high
    assert Counter(fault.begin for fault in faults if fault.kind != "pause") == {None: 20, 0.4: 20}


def test_another_seed_is_another_order() -> None:
    assert captures(7) == PLAN
    assert [run.faults for run in captures(8).runs] != [run.faults for run in PLAN.runs]
