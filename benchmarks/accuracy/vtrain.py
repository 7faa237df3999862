"""Iteration times of language models on one node of 8 GPUs: models and scales that were not learned from.

Data: vTrain's published ground truth (Bang et al. 2024), 1,440 configurations of 8 model shapes on A100s. Settings were
not searched here: the correction is chosen in `CorrectedPrior.fit`, by groups held out of the training rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy.row import Row
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.analytic.prior.corrected import CorrectedPrior
from crosswind.models.scores import coverage
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

TABLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "vtrain" / "ground_truth_single.csv"
COLUMNS = {
    "# GPUs": "ranks",
    "global batch": "global_batch",
    "micro batch": "micro_batch",
    "hidden size": "hidden",
    "attention heads": "heads",
    "# layers": "layers",
    "sequence length": "sequence",
    "tensor parallelism": "tensor_parallel",
    "data parallelism": "data_parallel",
    "pipeline parallelism": "pipeline_parallel",
}
MILLISECONDS = "iteration time (ms)"
ACCELERATOR = "A100-SXM4-80GB"  # the node of the paper, an AWS p4de
LEAVE_MODEL_OUT_ASKED = 0.084
DRAWS = 3  # of the k target rows; figures are means over them
TARGET_ROWS = (0, 3, 10)
SCALES = (2, 4)

Mask: TypeAlias = NDArray[np.bool_]


def rows() -> list[Row]:
    """Leave-model-out, then fewer GPUs to more with some target rows; none where the data is absent."""
    if not TABLE.exists():
        return []
    X, y = table()
    return [_leave_model_out(X, y), *_scaled_out(X, y)]


def table() -> tuple[pd.DataFrame, Floats]:
    """Configurations by the columns' names in docs/models/analytic.md, and seconds."""
    read = pd.read_csv(TABLE, encoding="utf-8-sig")
    X = read.rename(columns=COLUMNS)[list(COLUMNS.values())].assign(accelerator=ACCELERATOR)
    return X, read[MILLISECONDS].to_numpy(np.float64) / 1e3


def _leave_model_out(X: pd.DataFrame, y: Floats) -> Row:
    models = X.groupby(["hidden", "layers"]).ngroup().to_numpy()
    folds = [_Predicted.of(X, y, models != model, ("hidden", "layers")) for model in np.unique(models)]
    figures, baselines = _mean([fold.figures() for fold in folds]), _mean_baselines(folds)
    chosen = sorted({fold.chosen for fold in folds})
    return Row(
        task="vtrain: iteration time of a model never seen",
        split="leave one of 8 models (hidden, layers) out, mean over them; correction chosen by inner leave-models-out",
        rows=len(y),
        figures=figures,
        asked="MAPE below 8.4 %",
        holds=figures["mape"] < LEAVE_MODEL_OUT_ASKED,
        baselines=baselines,
        note=f"chosen: {', '.join(chosen)}; the file's times are affine in layers to 0.02 %: hardly any noise",
    )


def _scaled_out(X: pd.DataFrame, y: Floats) -> Iterator[Row]:
    ranks = X["ranks"].to_numpy()
    for scale in SCALES:
        for k in TARGET_ROWS:
            yield _scale_row(X, y, ranks <= scale, k)


def _scale_row(X: pd.DataFrame, y: Floats, small: Mask, k: int) -> Row:
    n_draws = DRAWS if k else 1
    draws = [_Predicted.of(X, y, _with_some_more(small, k, draw), ("ranks",)) for draw in range(n_draws)]
    figures, baselines = _mean([draw.figures() for draw in draws]), _mean_baselines(draws)
    most = int(X["ranks"][small].max())
    return Row(
        task=f"vtrain: from at most {most} GPUs to more, {k} runs there known",
        split=f"fitted on ranks <= {most} and {k} random rows of more, mean of {n_draws} draws",
        rows=int((~small).sum()) - k,
        figures=figures,
        asked="MAPE below XGBoost's on the same rows",
        holds=figures["mape"] < baselines["xgboost"]["mape"],
        baselines=baselines,
        note=f"chosen: {', '.join(sorted({draw.chosen for draw in draws}))}",
    )


@dataclass(frozen=True)
class _Predicted:
    """Rows that were held out, as three models fitted on the others see them."""

    y: Floats
    ours: Prediction
    chosen: str
    formulas: Floats
    xgboost: Floats

    @classmethod
    def of(cls, X: pd.DataFrame, y: Floats, training: Mask, groups: tuple[str, ...]) -> Self:
        model = CorrectedPrior(groups).fit(X[training], y[training])
        asked = X[~training]
        formulas, trees = model.prior.seconds(asked), _xgboost(X[training], y[training], asked)
        return cls(y[~training], model.predict(asked), model.chosen, formulas, trees)

    def figures(self) -> dict[str, float]:
        held = coverage(self.ours, self.y, low=0.05, high=0.95)
        return {**_errors(self.ours.at(0.5), self.y), "coverage_90": held}

    def baselines(self) -> dict[str, dict[str, float]]:
        return {"xgboost": _errors(self.xgboost, self.y), "formulas alone": _errors(self.formulas, self.y)}


def _with_some_more(small: Mask, k: int, seed: int) -> Mask:
    training = small.copy()
    training[np.random.default_rng(seed).choice(np.flatnonzero(~small), k, replace=False)] = True
    return training


def _xgboost(X: pd.DataFrame, y: Floats, asked: pd.DataFrame) -> Floats:
    numbers = list(COLUMNS.values())
    model = XgboostQuantileSurrogate(n_rounds=500, max_depth=6)  # the reference's 8.4 % needs more than the defaults
    return model.fit(X[numbers], y).predict(asked[numbers]).at(0.5)


def _errors(predicted: Floats, y: Floats) -> dict[str, float]:
    ratios = np.abs(predicted / y - 1)
    return {"mape": float(np.mean(ratios)), "median_ape": float(np.median(ratios))}


def _mean_baselines(tried: Sequence[_Predicted]) -> dict[str, dict[str, float]]:
    return {name: _mean([predicted.baselines()[name] for predicted in tried]) for name in tried[0].baselines()}


def _mean(errors: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([figures[name] for figures in errors])) for name in errors[0]}


def main() -> None:
    for row in rows():
        print(f"{row.task}: {dict(row.figures)}\n  beside {dict(row.baselines)}; asked {row.asked}: {row.holds}")
        print(f"  {row.split}; {row.rows} rows. {row.note}")


if __name__ == "__main__":
    main()
