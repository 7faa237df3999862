"""MLPerf's runs as the result logs that they were parsed from: the files that whoever ran them has."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.accuracy.store import Files

HYPERPARAMETER, DESCRIPTION = "hp_", "sys_"
# Logged while a run trains or after that, so nobody knows them before: BERT's `train_samples` are those that it needed.
OUTCOMES = frozenset(
    (
        *("train_accuracy", "target_accuracy_reached", "eval_result", "trained_samples", "status", "current_lr"),
        *("actual_selfplay_games_per_generation", "learning_rate", "data_file", "save_model"),
    )
)
OUTCOMES_OF = {"bert": frozenset(("train_samples", "eval_samples"))}
FIRST = ("submission_benchmark", "submission_org", "submission_division", "submission_status", "submission_platform")


def system_of(row: "pd.Series[Any]") -> str:
    """A submitter's machines with one family of accelerators: the cluster as its operator would name it."""
    return f"{row['submitter_dir']} {row['acc_family']}"


def write(runs: pd.DataFrame, folder: Path) -> dict[str, Files]:
    """Write the logs of all runs, and return the files of each configuration by its `config_id`.

    A log holds runs that followed one another, as a job's output does; those that ran side by side have logs of their
    own.
    """
    files = {}
    for place, (config, of_config) in enumerate(runs.groupby("config_id")):
        rows = [row for _, row in of_config.sort_values("run_start_ms").iterrows()]
        paths = []
        for number, consecutive in enumerate(_chains(rows)):
            paths.append(folder / f"{place}_{number}.txt")
            paths[-1].write_text("".join(line for row in consecutive for line in _lines(row)))
        files[str(config)] = Files(system_of(rows[0]), tuple(paths))
    return files


def _chains(rows: Sequence["pd.Series[Any]"]) -> list[list["pd.Series[Any]"]]:
    """Rows in the order of their starts as sequences in which each begins after the one before has ended."""
    chains: list[list[pd.Series[Any]]] = []
    for row in rows:
        for chain in chains:
            if chain[-1]["run_stop_ms"] < row["run_start_ms"]:
                chain.append(row)
                break
        else:
            chains.append([row])
    return chains


def _lines(row: "pd.Series[Any]") -> Iterator[str]:
    began, ended = int(row["run_start_ms"]), int(row["run_stop_ms"])
    init = began if math.isnan(row["init_start_ms"]) else int(row["init_start_ms"])
    yield f":::SYSJSON {json.dumps(_described(row))}\n"
    yield _event(init, "init_start", None)
    for key, value in _logged(row):
        yield _event(init, key, value)
    yield _event(began, "init_stop", None)
    yield _event(began, "run_start", None)
    yield _event(ended, "run_stop", None, status=str(row["status"]))


def _event(time_ms: int, key: str, value: object, **metadata: object) -> str:
    event = {"namespace": "", "time_ms": time_ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return f":::MLLOG {json.dumps(event | {'metadata': {'lineno': 1, **metadata}})}\n"


def _logged(row: "pd.Series[Any]") -> Iterable[tuple[str, object]]:
    """The submission's name and its hyperparameters, as the log has them before the training."""
    values = {name.removeprefix(HYPERPARAMETER): row[name] for name in row.index if name.startswith(HYPERPARAMETER)}
    values["submission_benchmark"] = values["submission_benchmark"] or row["benchmark"]
    left_out = OUTCOMES | OUTCOMES_OF.get(row["benchmark"], frozenset())
    ordered = [*FIRST, *(name for name in values if name not in {*FIRST, *left_out})]
    return ((name, _plain(values[name])) for name in ordered if not pd.isna(values.get(name)))


def _described(row: "pd.Series[Any]") -> dict[str, object]:
    """The system's description, `systems/NAME.json` of a submission, which its batch scripts echo."""
    texts = {name.removeprefix(DESCRIPTION): row[name] for name in row.index if name.startswith(DESCRIPTION)}
    present = {name: _plain(value) for name, value in texts.items() if not pd.isna(value)}
    return present | {"number_of_nodes": int(row["n_nodes"]), "accelerators_per_node": int(row["acc_per_node"])}


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
