import numpy as np
import pandas as pd
import pytest
from tests.models.surrogate.scaling_runs import scaling_runs

from crosswind.models.surrogate import LogLinearSurrogate, NearestCohortSurrogate


@pytest.mark.parametrize("model", [LogLinearSurrogate(), NearestCohortSurrogate()])
def test_the_law_holds_where_no_run_has_been(model: LogLinearSurrogate | NearestCohortSurrogate) -> None:
    X, seconds = scaling_runs(80)
    asked = pd.DataFrame({"ranks": [1024.0], "device": ["slow"]})
    # 2000 / 1024; the penalty holds slopes back by less than 0.5 %, which 5 doublings more make 15 %.
    assert model.fit(X, seconds).predict(asked).at(0.5)[0] == pytest.approx(2000 / 1024, rel=0.2)


def test_a_cohort_that_breaks_the_law_is_predicted_by_its_own_runs() -> None:
    X, seconds = scaling_runs(200)
    seconds[X["ranks"] == 8] *= 1.5
    asked = pd.DataFrame({"ranks": [8.0, 4.0], "device": ["fast", "fast"]})
    broken, usual = NearestCohortSurrogate().fit(X, seconds).predict(asked).at(0.5)
    assert broken == pytest.approx(1.5 * 1000 / 8, rel=0.1)
    assert usual == pytest.approx(1000 / 4, rel=0.1)


def test_one_absurd_run_does_not_bend_the_law() -> None:
    X, seconds = scaling_runs(80)
    seconds[5] *= 1000
    slope = LogLinearSurrogate().fit(X, seconds).slopes[0]
    assert slope == pytest.approx(-np.std(np.log(X["ranks"])), rel=0.03)  # seconds fall as 1 / ranks


def test_a_level_is_what_a_category_adds_to_log_seconds() -> None:
    X, seconds = scaling_runs(80)
    [levels] = LogLinearSurrogate().fit(X, seconds).levels
    assert levels[1] - levels[0] == pytest.approx(np.log(2), rel=0.05)
