"""Models never seen and scales never seen, on measured iteration times; skipped where the data is absent."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.needs import needs_data

from crosswind.models.analytic.prior.prior import AnalyticPrior

TABLE = Path(__file__).resolve().parents[5] / "shared" / "data" / "vtrain" / "ground_truth_single.csv"
NAMES = ["ranks", "global_batch", "micro_batch", "hidden", "heads", "layers", "sequence"]
NAMES += ["tensor_parallel", "data_parallel", "pipeline_parallel", "milliseconds"]

pytestmark = needs_data(TABLE)


@pytest.mark.thorough
@pytest.mark.parametrize(("column", "most"), [("ranks", 4), ("layers", 16)])
def test_formulas_reach_beyond_the_runs_that_calibrated_them(column: str, most: int) -> None:
    X = pd.read_csv(TABLE, encoding="utf-8-sig").set_axis(NAMES, axis=1).assign(accelerator="A100-SXM4-80GB")
    y = X.pop("milliseconds").to_numpy(np.float64) / 1e3
    in_calibration = (X[column] <= most).to_numpy()
    model = AnalyticPrior(n_rows_max=150).fit(X[in_calibration], y[in_calibration])
    # About 7 % when written; XGBoost is 35 % off at scales never seen. More than 10 % would be a broken formula.
    assert np.mean(np.abs(model.seconds(X[~in_calibration]) / y[~in_calibration] - 1)) < 0.10
