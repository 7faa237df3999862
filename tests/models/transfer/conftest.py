"""Sources and targets with a known truth."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.prediction import Floats

SOURCE = "system"


@dataclass(frozen=True)
class Case:
    """Rows of sources, rows of a target three times as slow, and rows to ask about."""

    source: pd.DataFrame
    source_seconds: Floats
    target: pd.DataFrame
    target_seconds: Floats
    asked: pd.DataFrame
    answer: Floats


def seconds(rows: pd.DataFrame) -> Floats:
    """Smooth in two numbers, and a fifth longer in fp32."""
    logs = np.sin(1.5 * rows["doublings"]) + 0.4 * rows["nodes"] + np.log(1.2) * (rows["precision"] == "fp32")
    return np.asarray(np.exp(logs), dtype=np.float64)


def table(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "doublings": rng.uniform(-2, 2, count),
            "nodes": rng.uniform(-2, 2, count),
            "precision": rng.choice(["fp32", "bf16"], count),
        }
    )


def case(*, runs: int, sources: tuple[str, ...] = ("alike",), seed: int = 0) -> Case:
    """`alike` is the target at a third of its time, `reversed` its inverse, `noise` has no meaning."""
    rng = np.random.default_rng(seed)
    tables, times = [], []
    for place, name in enumerate(sources):
        rows = table(120, seed=100 * seed + place + 1)
        kinds = {"alike": seconds(rows), "reversed": 1 / seconds(rows), "noise": rng.lognormal(size=len(rows))}
        tables.append(rows.assign(system=name))
        times.append(kinds[name])
    target, asked = table(runs, seed=100 * seed + 50), table(100, seed=100 * seed + 51)
    return Case(
        pd.concat(tables, ignore_index=True),
        np.concatenate(times),
        target.assign(system="new"),
        3 * seconds(target),
        asked.assign(system="new"),
        3 * seconds(asked),
    )


@pytest.fixture(scope="session")
def make_case() -> object:
    return case
