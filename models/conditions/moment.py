"""Moments at which conditions are read."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run

LOOK_BACK_SECONDS = 30.0
LOOK_BACK_NS = int(LOOK_BACK_SECONDS * 1e9)


@dataclass(frozen=True)
class Moment:
    """The time just before `at_ns`, in ns UTC, on nodes of a system; `run_id` is the run about to begin there."""

    at_ns: int
    nodes: tuple[str, ...]
    system: str
    run_id: str | None = None


def starts_of(runs: Sequence[Run]) -> list[Moment]:
    """The moments in which these runs began. Raises: InvalidInputError for a run without a start."""
    return [_start_of(run) for run in runs]


def places_of(moments: Sequence[Moment]) -> pd.DataFrame:
    """One row a moment and node: `moment`, its number; `at_node`; the look-back, `from_ns` to before `until_ns`."""
    rows = [
        (number, node, moment.at_ns - LOOK_BACK_NS, moment.at_ns)
        for number, moment in enumerate(moments)
        for node in dict.fromkeys(moment.nodes)
    ]
    columns = ["moment", "at_node", "from_ns", "until_ns"]
    types = {"moment": "int64", "at_node": "object", "from_ns": "int64", "until_ns": "int64"}
    return pd.DataFrame(rows, columns=columns).astype(types)


def _start_of(run: Run) -> Moment:
    if run.started_ns is None:
        raise InvalidInputError(f"run {run.run_id}: started_ns is unknown, expected the time in ns UTC")
    return Moment(run.started_ns, run.nodes, run.system, run.run_id)
