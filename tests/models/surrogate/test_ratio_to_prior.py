import numpy as np
import pandas as pd
import pytest
from tests.models.surrogate.scaling_runs import scaling_runs

from crosswind.models.surrogate import LogLinearSurrogate, RatioToPrior, XgboostQuantileSurrogate


def test_beyond_the_rows_the_prior_carries_on_where_trees_stand_still() -> None:
    X, seconds = scaling_runs(200)
    asked = pd.DataFrame({"ranks": [512.0], "device": ["fast"]})
    trees = XgboostQuantileSurrogate().fit(X, seconds).predict(asked).at(0.5)[0]
    both = RatioToPrior().fit(X, seconds).predict(asked).at(0.5)[0]
    assert both == pytest.approx(1000 / 512, rel=0.25)
    assert trees > 10 * 1000 / 512  # the smallest seen is 1000 / 32


def test_the_surrogate_corrects_what_the_prior_gets_wrong() -> None:
    X, seconds = scaling_runs(300)
    seconds[X["ranks"] == 8] *= 1.5
    asked = pd.DataFrame({"ranks": [8.0], "device": ["fast"]})
    law = LogLinearSurrogate().fit(X, seconds).predict(asked).at(0.5)[0]
    both = RatioToPrior().fit(X, seconds).predict(asked).at(0.5)[0]
    truth = 1.5 * 1000 / 8
    assert abs(np.log(both / truth)) < 0.1 < abs(np.log(law / truth))
