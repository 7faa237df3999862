"""Earlier runs as rows to forecast from: what was known before each of them, in the order of time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from crosswind.data.errors import InvalidInputError
from crosswind.data.metric import Scalar
from crosswind.data.prediction import Floats
from crosswind.data.trial import Configuration
from crosswind.models.features import Encoder, Values

CONFIGURATION, WORLD_SIZE, SECONDS = "configuration", "world_size", "seconds"


@dataclass(frozen=True)
class NextQuestion:
    """What is asked: a run of this configuration and scale under these conditions."""

    configuration: Configuration
    world_size: int
    conditions: Mapping[str, float]


@dataclass(frozen=True)
class Rows:
    """n comparable runs in the order of time and, as row n, the run asked about.

    `earlier[i]` holds the seconds that a naive forecast of row i starts from, `group[i]` tells whose forecast errors it
    shares, and `reference[i]` is the number of seconds that a model predicts the ratio to.
    """

    X: Floats  # (n + 1, n_columns)
    seconds: Floats  # (n,)
    earlier: tuple[Floats, ...]  # n + 1 arrays, none empty
    group: NDArray[np.int64]  # (n + 1,)
    reference: Floats  # (n + 1,)

    def __len__(self) -> int:
        return len(self.seconds)


def check_history(history: pd.DataFrame) -> None:
    """Refuses a history with missing columns or impossible values. Raises: InvalidInputError."""
    missing = [name for name in (CONFIGURATION, WORLD_SIZE, SECONDS) if name not in history]
    if missing:
        raise InvalidInputError(f"history has no column {', '.join(missing)}; it has {', '.join(map(str, history))}")
    texts = [name for name in (WORLD_SIZE, SECONDS, *condition_names(history)) if not is_numeric_dtype(history[name])]
    if texts:
        raise InvalidInputError(f"history column {texts[0]} is of type {history[texts[0]].dtype}, expected numbers")
    seconds = history[SECONDS].to_numpy(np.float64)
    wrong = ~(np.isfinite(seconds) & (seconds > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(f"history row {row}: seconds is {seconds[row]}, expected a positive number")
    for row, (configuration, world_size) in enumerate(zip(history[CONFIGURATION], history[WORLD_SIZE], strict=True)):
        if not isinstance(configuration, Mapping):
            raise InvalidInputError(f"history row {row}: configuration is {configuration!r}, expected a mapping")
        if not world_size >= 1:
            raise InvalidInputError(f"history row {row}: world_size is {world_size}, expected at least 1")


def condition_names(history: pd.DataFrame) -> list[str]:
    """The columns that describe the conditions at a run's start."""
    return [str(name) for name in history.columns if name not in (CONFIGURATION, WORLD_SIZE, SECONDS)]


def is_same_cohort(history: pd.DataFrame, question: NextQuestion) -> NDArray[np.bool_]:
    """Which earlier runs had the configuration and scale asked about, shape (n_runs,)."""
    wanted = _key(question.configuration, question.world_size)
    return np.array([key == wanted for key in _keys(history)], dtype=bool)


def repeated_runs(history: pd.DataFrame, question: NextQuestion) -> Rows:
    """Rows of every run whose cohort had run before: each is forecast from its own cohort's earlier runs."""
    cohort, _ = pd.factorize(np.array([*_keys(history), _key(question.configuration, question.world_size)]))
    seconds = history[SECONDS].to_numpy(np.float64)
    earlier = _earlier_of_cohort(cohort, seconds)
    kept = np.array([len(each) > 0 for each in earlier])
    found = tuple(each for each in earlier if len(each) > 0)
    X = np.column_stack([_features(history, question)[kept], [_summary(each) for each in found]])
    reference = np.array([np.median(each) for each in found])
    return Rows(X, seconds[kept[:-1]], found, cohort[kept].astype(np.int64), reference)


def first_runs(history: pd.DataFrame, question: NextQuestion) -> Rows:
    """Rows of the first run of every cohort: how a configuration that never ran before is forecast from the others."""
    first = ~pd.Series(_keys(history)).duplicated().to_numpy()
    firsts = history[first].reset_index(drop=True)
    seconds = firsts[SECONDS].to_numpy(np.float64)
    X = _features(firsts, question)[1:]  # nothing came before the very first
    count = len(seconds)
    earlier = tuple(seconds[:index] for index in range(1, count + 1))
    return Rows(X, seconds[1:], earlier, np.zeros(count, dtype=np.int64), np.ones(count))


def _key(configuration: Values, world_size: float) -> str:
    return json.dumps([dict(configuration), int(world_size)], sort_keys=True, default=str)


def _keys(history: pd.DataFrame) -> list[str]:
    pairs = zip(history[CONFIGURATION], history[WORLD_SIZE], strict=True)
    return [_key(configuration, world_size) for configuration, world_size in pairs]


def _earlier_of_cohort(cohort: NDArray[np.int64], seconds: Floats) -> list[Floats]:
    members: dict[int, list[float]] = {}
    earlier = []
    for index, key in enumerate(cohort):
        past = members.setdefault(int(key), [])
        earlier.append(np.array(past, dtype=np.float64))
        if index < len(seconds):
            past.append(float(seconds[index]))
    return earlier


def _summary(earlier: Floats) -> tuple[float, float, float]:
    """How often a cohort ran, how its last run compares with its median, and its spread; ratios as logarithms."""
    logs = np.log(earlier)
    spread = float(np.std(logs, ddof=1)) if len(logs) > 1 else np.nan
    return float(len(logs)), float(logs[-1] - np.median(logs)), spread


def _features(history: pd.DataFrame, question: NextQuestion) -> Floats:
    past = cast(Sequence[Values], history[CONFIGURATION].tolist())
    configurations = Encoder.of(past).encode([*past, question.configuration])
    names = condition_names(history)
    conditions = [*history[names].to_numpy(np.float64, na_value=np.nan).tolist(), _asked(names, question)]
    scale = [*history[WORLD_SIZE].tolist(), question.world_size]
    rows = (len(scale), len(names))
    return np.column_stack(
        [configurations, np.array(scale, np.float64), np.array(conditions, np.float64).reshape(rows)]
    )


def _asked(names: Sequence[str], question: NextQuestion) -> list[float]:
    unknown = sorted(set(question.conditions) - set(names))
    if unknown:
        raise InvalidInputError(f"condition {unknown[0]} is in no earlier run; known: {', '.join(names) or 'none'}")
    wrong = [
        name for name, value in question.conditions.items() if not isinstance(value, int | float) or np.isinf(value)
    ]
    if wrong:
        raise InvalidInputError(f"condition {wrong[0]} is {question.conditions[wrong[0]]!r}, expected a finite number")
    return [float(question.conditions.get(name, np.nan)) for name in names]


def outside_warnings(history: pd.DataFrame, question: NextQuestion) -> list[str]:
    """Sentences on what is asked that no earlier run had: a prediction there is an extrapolation."""
    past: dict[str, list[Scalar]] = {}
    for configuration in cast(Sequence[Values], history[CONFIGURATION].tolist()):
        for name, value in configuration.items():
            past.setdefault(name, []).append(value)
    asked: dict[str, Scalar] = {**question.configuration, WORLD_SIZE: question.world_size, **question.conditions}
    absent = [f"parameter {name} is not given, earlier runs had it" for name in sorted(past) if name not in asked]
    for name in (WORLD_SIZE, *condition_names(history)):
        past[name] = history[name].dropna().tolist()
    return [*absent, *(sentence for name in asked if (sentence := _outside(name, asked[name], past.get(name, []))))]


def _outside(name: str, value: Scalar, past: Sequence[Scalar]) -> str:
    numbers = [each for each in past if isinstance(each, int | float)]
    if not past:
        return f"{name} is {value}, no earlier run had it"
    if isinstance(value, int | float) and numbers:
        low, high = min(numbers), max(numbers)
        return "" if not (value < low or value > high) else f"{name} is {value}, earlier runs had {low} to {high}"
    seen = sorted({str(each) for each in past})
    return "" if str(value) in seen else f"{name} is {value}, earlier runs had {', '.join(seen)}"
