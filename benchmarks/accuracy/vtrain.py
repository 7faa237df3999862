"""Iteration times of language models on a node of 8 GPUs, asked of models and scales that no store has seen.

Data: vTrain's published ground truth (Bang et al. 2024), 1,440 configurations of 8 model shapes on A100s; a store has
some of its rows, ingested as the table that they are, by a map that names the accelerator as well. Then published runs
on 32 to 3,072 GPUs (`megatron_table_1.csv`) are asked of a store of all of them. Needs ../shared/data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy.asked import Asked, Scores, ask, ran
from benchmarks.accuracy.megatron_table import published
from benchmarks.accuracy.row import Row
from benchmarks.accuracy.store import Files, filled
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

TABLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "vtrain" / "ground_truth_single.csv"
MILLISECONDS = "iteration time (ms)"
SYSTEM = "p4de"  # AWS' node of 8 A100s
MAP = """
table: runs
workload: {value: language model}
ranks: "# GPUs"
nodes: {value: 1}
step_seconds: {column: iteration time (ms), unit: ms}
configuration:
  global_batch: global batch
  micro_batch: micro batch
  hidden: hidden size
  heads: attention heads
  layers: "# layers"
  sequence: sequence length
  tensor_parallel: tensor parallelism
  data_parallel: data parallelism
  pipeline_parallel: pipeline parallelism
facts: {accelerator: {value: A100-SXM4-80GB}}
"""
DRAWS = 3  # of the k target rows; figures are of all of them
TARGET_ROWS = (0, 3, 10)
SCALE = 2
WORSE = 1.1  # times the errors of the classes with features made by hand, at most
CLASSES = "before: classes by hand"
BEFORE: Mapping[str, float] = {"models": 0.001, "0": 0.042, "3": 0.066, "10": 0.045, "published": 0.034}
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """A task: masks of the rows that each store has, and the MAPE of the classes with features made by hand."""

    task: str
    folds: Sequence[Mask]
    before: float


def rows() -> list[Row]:
    """Models left out, then fewer GPUs to more with some target rows; none where the data is absent."""
    if not TABLE.exists():
        return []
    with TemporaryDirectory(prefix="crosswind-accuracy-") as folder:
        return list(_rows(pd.read_csv(TABLE, encoding="utf-8-sig"), Path(folder)))


def _rows(measured: pd.DataFrame, folder: Path) -> Iterator[Row]:
    questions = _questions(measured, folder)
    shapes = measured.groupby(["hidden size", "# layers"]).ngroup().to_numpy()
    models = [shapes != shape for shape in np.unique(shapes)]
    yield _row(Split("a model that never ran", models, BEFORE["models"]), measured, questions, folder)
    ranks = measured["# GPUs"].to_numpy()
    for k in TARGET_ROWS:
        draws = [_with_some_more(ranks <= SCALE, k, draw) for draw in range(DRAWS if k else 1)]
        split = Split(f"from at most {SCALE} GPUs to more, {k} runs there", draws, BEFORE[str(k)])
        yield _row(split, measured, questions, folder)
    yield _published_row(measured, folder)


def _questions(measured: pd.DataFrame, folder: Path) -> list[Asked]:
    """Return what asks for each row of the table, by what a store of all of them says of its run."""
    with filled(_files(measured, folder)) as client:
        stored = ran(client, Outcome.STEP).sort_values("started_ns")  # rows have no times, and keep their order
    return [Asked(row.question, (float(row.seconds),)) for row in stored.itertuples()]


def _files(measured: pd.DataFrame, folder: Path) -> list[Files]:
    """The table with these rows alone."""
    measured.to_csv(folder / TABLE.name, index=False)
    (folder / "map.yaml").write_text(MAP)
    return [Files(SYSTEM, (folder / TABLE.name,), ("--map", str(folder / "map.yaml")))]


def _row(split: Split, measured: pd.DataFrame, questions: Sequence[Asked], folder: Path) -> Row:
    scores = Scores.together(_scores(measured, questions, training, folder) for training in split.folds)
    trees = np.concatenate([_xgboost(measured[training], measured[~training]) for training in split.folds])
    ours = scores.figures()
    return Row(
        task=f"vtrain: {split.task}",
        split=f"{len(split.folds)} stores of the other rows, asked about those left out",
        rows=int(sum((~training).sum() for training in split.folds)),
        figures=ours,
        asked="MAPE at most 1.1 times that of the classes, and coverage of 90 % within its noise",
        holds=ours["mape"] <= WORSE * split.before and scores.covers and not scores.refused,
        baselines={CLASSES: {"mape": split.before}, "xgboost": _errors(trees)},
    )


def _scores(measured: pd.DataFrame, questions: Sequence[Asked], training: Mask, folder: Path) -> Scores:
    with filled(_files(measured[training], folder)) as client:
        return ask(client, [questions[place] for place in np.flatnonzero(~training)], Outcome.STEP)


def _published_row(measured: pd.DataFrame, folder: Path) -> Row:
    table_1 = published()
    asked = [Asked(row.question, (row.seconds,)) for row in table_1.itertuples()]
    with filled(_files(measured, folder)) as client:
        scores = ask(client, asked, Outcome.STEP)
    ours, before = scores.figures(), BEFORE["published"]
    return Row(
        task="Megatron-LM on 32 to 3,072 GPUs",
        split="none of the table's runs known: a store of vTrain's on 2 to 8",
        rows=len(asked),
        figures=ours,
        asked="MAPE at most 1.1 times that of the classes, and coverage of 90 % within its noise",
        holds=ours["mape"] <= WORSE * before and scores.covers and not scores.refused,
        baselines={CLASSES: {"mape": before}},
        note="the formulas' form was changed after a first look at this table; no constant was fitted to it",
    )


def _with_some_more(small: Mask, k: int, seed: int) -> Mask:
    training = small.copy()
    training[np.random.default_rng(seed).choice(np.flatnonzero(~small), k, replace=False)] = True
    return training


def _xgboost(training: pd.DataFrame, asked: pd.DataFrame) -> Floats:
    """Absolute percentage errors as ratios."""
    model = XgboostQuantileSurrogate(n_rounds=500, max_depth=6)  # the reference's 8.4 % needs more than the defaults
    model.fit(training.drop(columns=MILLISECONDS), training[MILLISECONDS].to_numpy(np.float64))
    seconds = asked[MILLISECONDS].to_numpy(np.float64)
    return np.abs(model.predict(asked.drop(columns=MILLISECONDS)).at(0.5) / seconds - 1)


def _errors(ape: Floats) -> dict[str, float]:
    return {"mape": float(ape.mean()), "median_ape": float(np.median(ape))}
