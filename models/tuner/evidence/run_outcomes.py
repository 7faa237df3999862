"""A study's objective, computed from what is stored of a run."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import PHASES
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.data.store.features import summaries
from crosswind.data.store.store import Store
from crosswind.models.tuner.space.expression import Expression

STEP_TIMES = tuple(f"step_{name}_seconds" for name in ("p05", "p50", "p95", "mean"))
PHASE_TIMES = tuple(f"{phase}_seconds" for phase in PHASES)
OF_STEPS = (*STEP_TIMES, "step_cov_ratio", *PHASE_TIMES)
OF_WHOLE_RUN = ("run_seconds", "steps")  # of a run that was cut short they mean nothing
OF_PLACE = ("world_size", "node_count")
OUTCOMES = (*OF_STEPS, *OF_WHOLE_RUN, *OF_PLACE)
NAMES_MAX = 10  # in a message


def objective_of(text: str, parameters: Collection[str] = ()) -> Expression:
    """Return the expression of an objective over OUTCOMES and the names in `parameters`.

    Raises: InvalidInputError that quotes the text and a name that is neither.
    """
    expression = Expression.parse(text)
    unknown = sorted(expression.names - {*OUTCOMES, *parameters})
    if unknown:
        others = ", ".join(sorted(parameters)[:NAMES_MAX])
        raise InvalidInputError(
            f"objective {text!r}: {unknown[0]} is no outcome of a run, expected one of {', '.join(OUTCOMES)}"
            f"{f', or a parameter: {others}' if others else ''}"
        )
    return expression


def outcomes_of(store: Store, runs: Sequence[Run]) -> list[dict[str, float]]:
    """Return the outcomes of the runs, in the order given: those of OUTCOMES that are finite numbers."""
    if not runs:
        return []
    table = summaries(store, runs)
    nodes = pd.Series([len(run.nodes) or None for run in runs], dtype="float64")
    rows = table.assign(node_count=nodes)[list(OUTCOMES)].astype("float64").to_dict("records")
    return [{str(name): float(value) for name, value in row.items() if np.isfinite(value)} for row in rows]


def value_at(
    objective: Expression, configuration: Configuration, outcomes: Mapping[str, float]
) -> tuple[float | None, str]:
    """Return the objective where it is a finite number, else why there is none."""
    values: dict[str, Parameter] = {**configuration, **outcomes}
    missing = sorted(objective.names - values.keys())
    if missing:
        return None, f"{missing[0]} is not recorded"
    try:
        value = objective.value(values)
    except InvalidInputError:
        return None, "the objective has no value"
    if isinstance(value, str) or not np.isfinite(value):
        return None, "the objective is no number"
    return float(value), ""
