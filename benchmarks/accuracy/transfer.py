"""Whole tuning tables predicted from other machines' or sizes' tables and k = 0 ... 10 runs of their own.

Targets and sources are those of the tuners' references. Of each source 200 valid rows are drawn, of the target k, by
seeds 0 and 1; scored are up to 400 other valid rows of the target: MAPE, and Kendall's tau of the ranks. Over tables,
errors are geometric means, as one table's seconds spread by 2 and another's by 30; ranks are plain means. The heFFTe
tables were filled by tuners, so their rows crowd near the optimum and ranks are harder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from benchmarks.accuracy.row import Row
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate
from crosswind.models.transfer.anchored import AnchoredTransfer
from crosswind.models.transfer.guarded import GuardedTransfer
from crosswind.models.transfer.multi_task_gp import MultiTaskGp
from crosswind.models.transfer.transfer import Transfer

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tuning"
TASKS: Mapping[str, Sequence[str]] = {  # target -> sources
    "kt_convolution/A100": ("kt_convolution/A4000", "kt_convolution/MI250X", "kt_convolution/W6600"),
    "kt_convolution/MI250X": ("kt_convolution/A100", "kt_convolution/A4000"),
    "kt_dedispersion/W7800": ("kt_dedispersion/A100", "kt_dedispersion/A4000"),
    "heffte_polaris/n016_s512x512x512": tuple(f"heffte_polaris/n00{nodes}_s512x512x512" for nodes in (2, 4, 8)),
    "heffte_theta/n064_s1400": tuple(f"heffte_theta/n00{nodes}_s1400" for nodes in (1, 2, 4, 8)),
}
RUNS = (0, 1, 3, 5, 10)
SEEDS = (0, 1)
SOURCE_ROWS, SCORED_ROWS = 200, 400
NOT_PARAMETERS = ("objective", "valid", "std", "n")
SOURCE = "table"
RANKS = "rank_agreement"
Scores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Draw:
    """One task by one seed: the sources' rows, the target's runs, and the rows to tell."""

    source: pd.DataFrame
    source_seconds: Floats
    target: pd.DataFrame
    target_seconds: Floats
    asked: pd.DataFrame
    measured: Floats


def _trees() -> XgboostQuantileSurrogate:
    return XgboostQuantileSurrogate(n_rounds=60, learning_rate=0.15)


WAYS: Mapping[str, Callable[[], Transfer]] = {
    "ours": lambda: GuardedTransfer(_trees(), SOURCE),
    "anchored": lambda: AnchoredTransfer(_trees(), SOURCE),
    "multi-task process": lambda: MultiTaskGp(SOURCE),
}


def rows() -> list[Row]:
    """A row a number of runs, over the tables that are there; none without tables."""
    there = {target: sources for target, sources in TASKS.items() if _path(target).is_file()}
    return [_row(there, runs) for runs in RUNS] if there else []


def _row(tasks: Mapping[str, Sequence[str]], runs: int) -> Row:
    by_task = {
        target: _mean([_scores(_draw(target, sources, runs, seed)) for seed in SEEDS])
        for target, sources in tasks.items()
    }
    scores = _over_tables(list(by_task.values()))
    rivals = [scores[name]["mape"] for name in ("target only", "source copy") if name in scores]
    worst = max(by_task, key=lambda target: by_task[target]["ours"]["mape"])
    return Row(
        task=f"transfer: {len(tasks)} tuning tables with {runs} runs of their own",
        split=f"{SOURCE_ROWS} rows a source, {runs} random runs of the target, others scored; {len(SEEDS)} seeds",
        rows=len(tasks) * len(SEEDS) * SCORED_ROWS,
        figures=scores["ours"],
        asked="MAPE no worse than target-only and than the sources' copy",
        holds=scores["ours"]["mape"] <= min(rivals),
        baselines={name: score for name, score in scores.items() if name != "ours"},
        note=f"largest MAPE of ours: {by_task[worst]['ours']['mape']:.1%} on {worst}",
    )


def _path(table: str) -> Path:
    return TABLES / f"{table}.parquet"


def _read(table: str) -> tuple[pd.DataFrame, Floats]:
    stored = pd.read_parquet(_path(table))
    stored = stored[stored["valid"] & (stored["objective"] > 0)].reset_index(drop=True)
    described = stored.drop(columns=[column for column in NOT_PARAMETERS if column in stored])
    return described, stored["objective"].to_numpy(dtype=np.float64)


def _draw(target: str, sources: Sequence[str], runs: int, seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    tables, times = [], []
    for source in sources:
        described, seconds = _read(source)
        chosen = rng.permutation(len(seconds))[:SOURCE_ROWS]
        tables.append(described.iloc[chosen].assign(**{SOURCE: source}))
        times.append(seconds[chosen])
    described, seconds = _read(target)
    order = rng.permutation(len(seconds))
    training, asked = order[:runs], order[max(RUNS) :][:SCORED_ROWS]  # the same rows are scored whatever the runs
    described = described.assign(**{SOURCE: target})
    return Draw(
        pd.concat(tables, ignore_index=True),
        np.concatenate(times),
        described.iloc[training],
        seconds[training],
        described.iloc[asked],
        seconds[asked],
    )


def _scores(draw: Draw) -> dict[str, dict[str, float]]:
    scores = {}
    for name, make in WAYS.items():
        way = make().fit(draw.source, draw.source_seconds, draw.target, draw.target_seconds)
        scores[name] = _figures(way.predict(draw.asked).at(0.5), draw.measured)
    nothing = (draw.target.iloc[:0], np.empty(0))
    copy = AnchoredTransfer(_trees(), SOURCE).fit(draw.source, draw.source_seconds, *nothing)
    scores["source copy"] = _figures(copy.predict(draw.asked).at(0.5), draw.measured)
    if len(draw.target_seconds):
        own = MultiTaskGp(SOURCE).fit(draw.source.iloc[:0], np.empty(0), draw.target, draw.target_seconds)
        scores["target only"] = _figures(own.predict(draw.asked).at(0.5), draw.measured)
    return scores


def _figures(predicted: Floats, measured: Floats) -> dict[str, float]:
    errors = np.abs(predicted / measured - 1)
    alike = np.ptp(predicted) == 0  # one value for all rows ranks nothing
    tau = 0.0 if alike else float(kendalltau(predicted, measured).statistic)
    return {"mape": float(errors.mean()), "median_ape": float(np.median(errors)), RANKS: tau}


def _mean(scores: Sequence[Scores]) -> dict[str, dict[str, float]]:
    return {
        name: {figure: float(np.mean([score[name][figure] for score in scores])) for figure in figures}
        for name, figures in scores[0].items()
    }


def _over_tables(scores: Sequence[Scores]) -> dict[str, dict[str, float]]:
    logs = [
        {
            name: {figure: value if figure == RANKS else float(np.log(value)) for figure, value in figures.items()}
            for name, figures in table_scores.items()
        }
        for table_scores in scores
    ]
    return {
        name: {figure: value if figure == RANKS else float(np.exp(value)) for figure, value in figures.items()}
        for name, figures in _mean(logs).items()
    }
