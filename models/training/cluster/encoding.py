"""Bins for the columns of all partitions, merged from a summary of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.next_run.run_trees import Encoding
from crosswind.models.training.cluster.features import LOG_SECONDS, learned, plain_columns

BINS_MAX = 250  # XGBoost has 256
POINTS = 1000  # of a partition's values of a column, evenly spaced among them in order
TEXTS_KEPT = 10_000  # of a column, the most frequent ones
BORROWED = 10.0  # runs of average time that a text's own runs are averaged with


@dataclass
class Summary:
    """Sums of a partition's log seconds, for each text too, and values of its numbers with the rows they stand for."""

    rows: int
    total: float
    texts: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)
    numbers: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)


def summarised(frame: pd.DataFrame, until_ns: int | None) -> Summary:
    """Summarise the rows of a partition that trees learn from."""
    rows = learned(frame, until_ns)
    summary = Summary(len(rows), float(rows[LOG_SECONDS].sum()))
    for name, column in plain_columns(rows).items():
        if is_numeric_dtype(column):
            summary.numbers[name] = _points(column.dropna().to_numpy(np.float64))
        else:
            sums = rows[LOG_SECONDS].groupby(column.astype(object)).agg(["count", "sum"])
            summary.texts[name] = {str(text): (int(n), float(total)) for text, n, total in sums.itertuples()}
    return summary


def encoding_of(summaries: Sequence[Summary], columns: Sequence[str]) -> Encoding:
    """Return the bins of `columns`. Raises: InvalidInputError where no row is learned from."""
    rows = sum(summary.rows for summary in summaries)
    if not rows:
        raise InvalidInputError("no run is old enough to learn from")
    centre = sum(summary.total for summary in summaries) / rows
    texts = {name for summary in summaries for name in summary.texts}
    means = {name: _means(summaries, name, centre) for name in sorted(texts)}
    cuts = {}
    for name in columns:
        if name in means:
            values = np.array(sorted(means[name].values()))
            cuts[name] = _cuts(values, np.ones(len(values)))
        else:
            parts = [summary.numbers[name] for summary in summaries if name in summary.numbers]
            cuts[name] = _cuts(*(np.concatenate(side) for side in zip(*parts, strict=True)))
    return Encoding(centre, means, cuts)


def _points(values: Floats) -> tuple[Floats, Floats]:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= POINTS:
        return distinct, counts.astype(np.float64)
    ordered = np.sort(values)
    places: NDArray[np.int64] = np.linspace(0, len(ordered) - 1, POINTS).astype(np.int64)
    return ordered[places], np.full(POINTS, len(ordered) / POINTS)


def _means(summaries: Sequence[Summary], name: str, centre: float) -> dict[str, float]:
    counts: Counter[str] = Counter()
    totals: dict[str, float] = {}
    for summary in summaries:
        for text, (count, total) in summary.texts.get(name, {}).items():
            counts[text] += count
            totals[text] = totals.get(text, 0.0) + total
    kept = sorted(text for text, _ in counts.most_common(TEXTS_KEPT))
    return {text: (totals[text] + BORROWED * centre) / (counts[text] + BORROWED) for text in kept}


def _cuts(values: Floats, weights: Floats) -> Floats:
    """Return cuts between all distinct values, or of many those that part the weight evenly."""
    distinct, place = np.unique(values, return_inverse=True)
    between: Floats = (distinct[:-1] + distinct[1:]) / 2
    if len(between) < BINS_MAX:
        return between
    share = np.cumsum(np.bincount(place, weights)) / weights.sum()
    chosen = np.searchsorted(share, np.arange(1, BINS_MAX) / BINS_MAX)
    return np.unique(between[np.minimum(chosen, len(between) - 1)])
