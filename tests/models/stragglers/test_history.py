from pathlib import Path

import pytest
from tests.models.forecast.stored_weather import BEGIN_NS, HOUR_NS, store_weather

from crosswind.data.store.store import Store
from crosswind.models.stragglers.history import history
from crosswind.models.stragglers.regressions import regressions


def test_levels_change_where_a_regression_is_told(tmp_path: Path) -> None:
    store_weather(tmp_path, 160, lambda hours: 1.25 if hours >= 100 else 1.0)
    with Store.open(tmp_path) as store:
        answer = history(store, "lab", "bert")
        [change] = [regression for regression in regressions(store).changes if regression.workload == "bert"]
    before, since = answer.levels
    assert since.since_ns == change.since_ns
    assert since.ratio / before.ratio == pytest.approx(change.ratio)
    assert (before.runs + since.runs, len(answer.runs)) == (80, 80)
    assert before.until_ns < since.since_ns <= since.until_ns == BEGIN_NS + 159 * HOUR_NS
    assert [run.started_ns for run in answer.runs] == sorted(run.started_ns for run in answer.runs)


def test_few_runs_and_none_have_no_levels(tmp_path: Path) -> None:
    store_weather(tmp_path, 8)
    with Store.open(tmp_path) as store:
        assert (history(store, "lab", "bert").levels, history(store, "lab", "none").runs) == ((), ())
