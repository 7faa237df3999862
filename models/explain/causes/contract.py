"""The promises of a cause, which other people's must keep before they are used."""

from collections.abc import Sequence
from typing import get_args

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.explain.causes.cause import Cause, Excess, Observed
from crosswind.models.explain.evidence.indicators import Indicator, InSegments, SegmentTimes
from crosswind.models.explain.evidence.step_columns import OTHER_THREADS, PHASES, THREAD

PARTS = {"name": str, "next_action": str, "columns": tuple, "indicators": tuple}
RESERVED = ("excess", "unexplained", "unknown")  # names of other shares
SHAPE = (3,)


def check(cause: Cause, others: Sequence[Cause]) -> None:
    """Check a cause, and that it takes no name and no column of the others. Raises: InvalidInputError."""
    lacking = [name for name, kind in PARTS.items() if not isinstance(getattr(cause, name, None), kind)]
    lacking += [name for name in ("claims", "evidence") if not callable(getattr(cause, name, None))]
    if lacking:
        raise InvalidInputError(f"expected a cause, found {cause!r:.80} without {', '.join(lacking)}")
    if cause.name in {*RESERVED, *(other.name for other in others)}:
        raise InvalidInputError(f"{cause.name}: its name is taken")
    _check_claims(cause, _columns(cause, others))
    _check_measures(cause)


def _columns(cause: Cause, others: Sequence[Cause]) -> list[str]:
    """Return all columns that the cause can use."""
    owners: dict[str, Indicator | None] = dict.fromkeys((*PHASES, *THREAD, OTHER_THREADS))
    owners |= {column: one for other in others for one in other.indicators for column in one.columns}
    for indicator in cause.indicators:
        if not isinstance(indicator, get_args(Indicator)):
            raise InvalidInputError(f"{cause.name}: expected indicators, found {indicator!r:.80}")
        for column in indicator.columns:
            if owners.setdefault(column, indicator) != indicator:
                raise InvalidInputError(f"{cause.name}: column {column} is other evidence already")
    if unknown := set(cause.columns) - owners.keys():
        raise InvalidInputError(f"{cause.name}: columns {sorted(unknown)} are of no indicator")
    return list(owners)


def _check_claims(cause: Cause, columns: Sequence[str]) -> None:
    """Check claims and evidence of a run that is 10 ms, or 0.01, above the expected in every column, or unrecorded."""
    for value in (np.nan, 0.01):
        claims = cause.claims(Excess({name: np.full(SHAPE, value) for name in columns}, dict.fromkeys(columns, 0.0)))
        shapes = {phase: np.shape(seconds) for phase, seconds in claims.items()}
        if not shapes or any(phase not in PHASES or shape != SHAPE for phase, shape in shapes.items()):
            raise InvalidInputError(f"{cause.name}: expected claims of shape {SHAPE} by phase, found {shapes}")
    means = dict.fromkeys(columns, 0.01)
    if not isinstance(text := cause.evidence(Observed(means, means)), str):
        raise InvalidInputError(f"{cause.name}: expected evidence as text, found {text!r:.80}")


def _check_measures(cause: Cause) -> None:
    """Check the evidence that is computed from segments, of two ranks of which the second arrives last."""
    of_ranks = {name: np.full((*SHAPE, 2), 0.01) for name in (*PHASES, *THREAD)}
    last = {name: values[:, 1] for name, values in of_ranks.items()}
    times = SegmentTimes(of_ranks, last, np.ones(SHAPE, np.int64), 0.05)
    for indicator in cause.indicators:
        if isinstance(indicator, InSegments) and np.shape(seconds := indicator.measure(times)) != SHAPE:
            raise InvalidInputError(
                f"{cause.name}: expected {indicator.column} of shape {SHAPE}, found {seconds!r:.80}"
            )
