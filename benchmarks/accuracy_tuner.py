"""How near to the optimum a tuner gets: best found / optimum after 5 to 40 trials on measured configurations.

The sample grid and the development tables were looked at while the start design was chosen; the held-out ones were
not, though most are of the same families (another machine or size). Only rows of a table may be picked; a failed row
costs a trial. The sample grid's truth is the geometric mean of its repeats. Without ../shared/data it runs alone.
"""

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from crosswind.data.prediction import Floats
from crosswind.data.samples import tuning_grid
from crosswind.data.trial import Configuration, Trial, TrialState
from crosswind.models.tuner import TUNERS, Space, Tuner

TABLES = Path(__file__).resolve().parents[2] / "shared" / "data" / "tuning"
DEVELOPMENT = (
    "kt_convolution/A100",
    "kt_convolution/MI250X",
    "heffte_polaris/n016_s512x512x512",
    "heffte_theta/n064_s1400",
)
HELD_OUT = (
    "kt_convolution/W6600",
    "ktbat_convolution/RTX_3060_laptop",
    "heffte_polaris/n004_s1024x1024x1024",
    "heffte_theta/n008_s64",
    "zeus_librispeech_deepspeech2/v100",
)
TRIALS = 40
SHOWN = (5, 10, 20, 40)
SEEDS = 10
NOT_PARAMETERS = ("objective", "valid", "std", "n")
MISSING = "missing"


@dataclass(frozen=True)
class Table:
    """What every configuration came to; None where it failed."""

    name: str
    space: Space
    objectives: dict[str, float | None]

    @property
    def optimum(self) -> float:
        return min(objective for objective in self.objectives.values() if objective is not None)


def sample_grid() -> Table:
    grid = tuning_grid()
    measured = ["repeat", "at_seconds", "seconds_per_1000_samples", "step_seconds", "step_seconds_p95", "steps"]
    parameters = grid.drop(columns=[*measured, "load_at_start"])
    logs = np.log(grid["seconds_per_1000_samples"])
    means = np.exp(logs.groupby([parameters[name] for name in parameters]).mean())
    rows = pd.DataFrame(means.index.tolist(), columns=list(parameters))
    return _table("sample grid", rows, means.tolist())


def stored_table(name: str) -> Table:
    rows = pd.read_parquet(TABLES / f"{name}.parquet")
    objectives = rows["objective"].where(rows["valid"])
    parameters = rows.drop(columns=[column for column in NOT_PARAMETERS if column in rows])
    return _table(name, parameters, [None if np.isnan(each) else each for each in objectives.tolist()])


def _table(name: str, parameters: pd.DataFrame, objectives: Sequence[float | None]) -> Table:
    rows: list[Configuration] = [
        {str(column): MISSING if pd.isna(value) else value for column, value in row.items()}
        for row in parameters.to_dict("records")
    ]
    whole = Space.from_json({column: _parameter([row[column] for row in rows]) for column in rows[0]})
    space = whole.only(rows)
    return Table(name, space, {space.key(row): value for row, value in zip(rows, objectives, strict=True)})


def _parameter(values: Sequence[object]) -> dict[str, object]:
    texts = any(isinstance(value, str) and value != MISSING for value in values)
    distinct = sorted(set(values), key=lambda value: (value != MISSING, value if not texts else str(value)))
    if all(isinstance(value, bool) for value in distinct):
        return {"kind": "boolean"}
    return {"kind": "categorical" if texts else "ordinal", "values": distinct}


def best_so_far(tuner: Tuner, table: Table) -> Floats:
    """The best objective after each trial, shape (TRIALS,); infinite before the first valid one."""
    found = []
    for index in range(TRIALS):
        [configuration] = tuner.suggest(1)
        objective = table.objectives[table.space.key(configuration)]
        state = TrialState.FAILED if objective is None else TrialState.DONE
        tuner.observe([Trial(configuration, state, objective, trial_id=str(index))])
        found.append(np.inf if objective is None else objective)
    return np.minimum.accumulate(np.array(found))


def ratios(table: Table, make: type[Tuner]) -> Floats:
    """Median over seeds of best / optimum at SHOWN."""
    curves = [best_so_far(make(table.space, seed), table) for seed in range(SEEDS)]  # type: ignore[call-arg]
    return np.asarray(np.median(curves, axis=0)[np.array(SHOWN) - 1] / table.optimum)


def main() -> None:
    splits = {"sample": [sample_grid()]}
    if TABLES.is_dir():
        splits |= {name: list(map(stored_table, names)) for name, names in _SPLITS.items()}
    print(f"{'split':<12} {'table':<38} {'tuner':<17}" + "".join(f"{f'@{count}':>8}" for count in SHOWN))
    figures: dict[str, object] = {}
    for split, tables in splits.items():
        for make in TUNERS:
            rows = {table.name: ratios(table, make) for table in tables}
            for name, row in [*rows.items(), ("geometric mean", np.exp(np.mean(np.log(list(rows.values())), axis=0)))]:
                print(f"{split:<12} {name:<38} {make.name:<17}" + "".join(f"{ratio:8.3f}" for ratio in row))
            figures |= {f"{split}_{make.name}_at_{count}": round(row[i], 4) for i, count in enumerate(SHOWN)}
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(json.dumps(figures | {"seeds": SEEDS, "trials": TRIALS, "machine": machine}))


_SPLITS = {"development": DEVELOPMENT, "held_out": HELD_OUT}

if __name__ == "__main__":
    main()
