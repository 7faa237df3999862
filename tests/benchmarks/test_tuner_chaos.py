"""Workers are killed with -9 at any moment, of a database and of a folder; the benchmark does so longer."""

from pathlib import Path

import pytest
from benchmarks.tuner_chaos import Plan, suffer


@pytest.mark.thorough
@pytest.mark.parametrize(
    "plan",
    [
        Plan("database", trials=50, workers=4, kill_seconds=0.3),
        Plan("folder", trials=60, workers=4, kill_seconds=0.2),
    ],
    ids=lambda plan: plan.back_end,
)
def test_no_trial_is_lost_doubled_or_stuck(plan: Plan, tmp_path: Path) -> None:
    outcome = suffer(plan, tmp_path)
    faults = (outcome.lost, outcome.doubled, outcome.stuck, outcome.foreign, outcome.missing, outcome.miscounted)
    assert faults == (0,) * 6
    assert outcome.trials >= plan.studies * plan.trials
    assert outcome.kills > 0
