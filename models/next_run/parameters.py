"""Parameters of configurations as columns: those that mean the same in every framework, and those that predict."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.prediction import Floats
from crosswind.models.next_run.describe import FORMULA, SCALE, SETTING, SYSTEM, WORKLOAD
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.mixed_kernel import Codes
from crosswind.models.surrogate.validation import LeaveGroupOut, Mask

COMMON = "common."  # prefix of what each framework has a name of its own for
BATCH, RANK_BATCH, ACCUMULATION = f"{COMMON}batch", f"{COMMON}rank_batch", f"{COMMON}accumulation"
OF_ALL = ("global_batch_size", "global_batch", "train_batch_size", "total_batch_size")
OF_A_RANK = (
    "per_device_train_batch_size",
    "local_batch_size",
    "micro_batch_size",
    "micro_batch",
    "batch_size",
    "batch",
)
NAMES: Mapping[str, Sequence[str]] = {
    ACCUMULATION: (
        *("gradient_accumulation_steps", "opt_gradient_accumulation_steps", "gradient_accumulation_frequency"),
        *("accumulate_grad_batches", "accumulation_steps", "grad_accum"),
    ),
    f"{COMMON}learning_rate": (
        *("learning_rate", "lr", "base_lr", "max_lr", "opt_lr"),
        *("opt_base_learning_rate", "lars_opt_base_learning_rate", "sgd_opt_base_learning_rate"),
    ),
    f"{COMMON}samples": ("train_samples", "num_train_samples", "max_train_samples"),
}
VARYING_MAX = 20  # parameters that vary within a workload; of more, only those that predict are learned from
SHARE_MIN = 0.05  # of the variance that a law of all else leaves within workloads
ROWS_MIN = 8  # that have a parameter
N_FOLDS = 4  # of systems
BORROWED = 2.0  # rows without an effect that a text's few rows are averaged with


def with_common(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `described` with the COMMON columns that any of its rows has, NaN where a row has none.

    Where formulas describe networks they know the batch, and a table stays as it is.
    """
    if FORMULA in table:
        return table
    settings = {_plain(str(name)): str(name) for name in table.columns if str(name).startswith(SETTING)}
    columns = {
        name: _first(table, [settings[own] for own in names if own in settings]) for name, names in NAMES.items()
    }
    columns[ACCUMULATION] = np.maximum(columns[ACCUMULATION], 1.0)
    ranks = table[SCALE].to_numpy(np.float64)
    of_all = _first(table, [settings[own] for own in OF_ALL if own in settings])
    of_a_rank = _first(table, [settings[own] for own in OF_A_RANK if own in settings])
    steps = np.where(np.isnan(columns[ACCUMULATION]), 1.0, columns[ACCUMULATION])
    columns[BATCH] = np.where(np.isnan(of_all), of_a_rank * ranks * steps, of_all)
    columns[RANK_BATCH] = columns[BATCH] / ranks
    return table.assign(**{name: values for name, values in columns.items() if np.isfinite(values).any()})


def learned_columns(table: pd.DataFrame, y: Floats) -> list[str]:
    """Columns of `with_common` to learn y, seconds, from: of many parameters only those that predict.

    Parameters count as many when more than VARYING_MAX vary within a workload. A column of thousands of runs' optimiser
    settings is noise to most of them. Networks that formulas describe need all of their parameters.
    """
    names = [str(name) for name in table.columns if not _repeats(table, str(name))]
    varying = [name for name in names if name.startswith(SETTING) and _varies(table[name], table[WORKLOAD])]
    if FORMULA in table or len(varying) <= VARYING_MAX:
        return names
    others = [name for name in names if not name.startswith(SETTING)]
    shares = _shares(table, y, others, varying)
    chosen = {name for name, share in shares.items() if share >= SHARE_MIN}
    return [name for name in names if name in others or name in chosen]


def _plain(name: str) -> str:
    return name.removeprefix(SETTING).replace("-", "_").lower()


def _first(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """The first number of these columns, 0 or more, that a row has, (n_rows,); NaN where it has none."""
    result = np.full(len(table), np.nan)
    for name in names:
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64, na_value=np.nan)
        result = np.where(np.isnan(result), np.where(values >= 0, values, np.nan), result)
    return result


def _repeats(table: pd.DataFrame, name: str) -> bool:
    """Return whether a parameter says what a COMMON column says in each of its rows."""
    if not name.startswith(SETTING) or not is_numeric_dtype(table[name]):
        return False
    values = table[name].to_numpy(np.float64, na_value=np.nan)
    present = ~np.isnan(values)
    commons = [str(column) for column in table.columns if str(column).startswith(COMMON)]
    return any(np.array_equal(values[present], table[common].to_numpy(np.float64)[present]) for common in commons)


def _varies(values: "pd.Series[Any]", workloads: "pd.Series[Any]") -> bool:
    return bool(values.groupby(workloads.to_numpy()).nunique().max() > 1)


def _shares(table: pd.DataFrame, y: Floats, others: Sequence[str], varying: Sequence[str]) -> dict[str, float]:
    """Shares of the variance within workloads, left by a law of the others, that each explains on systems left out."""
    rows = table[list(others)]
    law = LogLinearSurrogate().fit(rows, y)
    left = np.log(y) - law.expected(law.points(rows))
    workloads, folds = pd.factorize(table[WORKLOAD])[0], LeaveGroupOut(SYSTEM, N_FOLDS).folds(table)
    if len(np.unique(folds)) == 1:
        folds = np.arange(len(table)) % N_FOLDS
    whole = float(np.square(left - _means(workloads, left)[workloads]).sum())
    return {name: _gain(table[name], left, workloads, folds) / max(whole, 1e-12) for name in varying}


def _gain(values: "pd.Series[Any]", left: Floats, workloads: Codes, folds: Codes) -> float:
    """Decrease of the sum of squares on left-out folds by a line in the values, or by the levels of texts."""
    present = values.notna().to_numpy()
    if present.sum() < ROWS_MIN:
        return 0.0
    rest, groups, parts = left[present], workloads[present], folds[present]
    effects_of = _line if is_numeric_dtype(values) else _texts
    gain = 0.0
    for part in np.unique(parts):
        learned = parts != part
        errors = rest - _means(groups[learned], rest[learned], groups.max() + 1)[groups]
        effects = effects_of(values[present], groups, errors, learned)
        gain += float(np.square(errors[~learned]).sum() - np.square(errors[~learned] - effects).sum())
    return gain


def _line(values: "pd.Series[Any]", groups: Codes, errors: Floats, learned: Mask) -> Floats:
    """Effects on the rows left out by a line in the values, or in their logarithms where all are positive."""
    raw = values.to_numpy(np.float64)
    numbers = np.log(raw) if raw.min() > 0 else raw
    apart = numbers - _means(groups[learned], numbers[learned], groups.max() + 1)[groups]
    slope = float(apart[learned] @ errors[learned]) / max(float(apart[learned] @ apart[learned]), 1e-9)
    return np.asarray(slope * apart[~learned], dtype=np.float64)


def _texts(values: "pd.Series[Any]", groups: Codes, errors: Floats, learned: Mask) -> Floats:
    """Effects on the rows left out by the shrunk means of the errors with their text."""
    codes = pd.factorize(pd.Series(groups).astype(str) + "|" + values.astype(str).to_numpy())[0]
    sums = np.bincount(codes[learned], errors[learned], minlength=codes.max() + 1)
    counts = np.bincount(codes[learned], minlength=codes.max() + 1)
    return np.asarray((sums / (counts + BORROWED))[codes[~learned]], dtype=np.float64)


def _means(groups: Codes, values: Floats, count: int = 0) -> Floats:
    """Means of the values by group; 0 of a group without any."""
    sums = np.bincount(groups, values, minlength=count)
    return np.asarray(sums / np.maximum(np.bincount(groups, minlength=count), 1), dtype=np.float64)
