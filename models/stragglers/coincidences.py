"""Facts of a workload's runs that changed when its time did, ranked by how exactly the changes coincide."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.stragglers import ChangedFact
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run

AGREEING = 0.9  # least agreement of a suspect
EXACT = 0.5  # exactness below which a fact is not suspected
SPREAD = 0.1  # of the smaller side: the distance in runs by which noise may misplace a change of level
OFF_MIN, OFF_MAX = 2, 10
NONE = "not recorded"
EXPERIMENT_TAGS = ("split", "injected", "position", "plan", "lab")  # of an experiment; they are no causes


def suspects(before: Sequence[Run], since: Sequence[Run]) -> list[ChangedFact]:
    """The facts that changed between these runs, both in the order of time: the most exact first, or none."""
    runs = [*before, *since]
    if not before or not since:
        return []
    candidates = [_suspect(name, values, len(before)) for name, values in _facts(runs)]
    kept = [suspect for suspect in candidates if suspect is not None]
    return sorted(kept, key=lambda suspect: (-suspect.exactness, suspect.runs_off, suspect.fact))


def _facts(runs: Sequence[Run]) -> Iterator[tuple[str, list[str]]]:
    """Yield facts with their value in each run. Parameters are left out, for other parameters make another cohort."""
    yield from _mapped("software", [run.software for run in runs])
    yield from _mapped("tag", [_tags_of(run) for run in runs])
    yield "command", [" ".join(run.command) or NONE for run in runs]
    yield "number of nodes", [str(len(run.nodes)) if run.nodes else NONE for run in runs]
    for node in sorted({node for run in runs for node in run.nodes}):
        yield f"node {node}", ["used" if node in run.nodes else "not used" if run.nodes else NONE for run in runs]


def _tags_of(run: Run) -> dict[str, str]:
    return {name: value for name, value in run.tags.items() if name not in EXPERIMENT_TAGS}


def _mapped(kind: str, maps: Sequence[object]) -> Iterator[tuple[str, list[str]]]:
    tables = [dict(mapping) if isinstance(mapping, dict) else {} for mapping in maps]
    for name in sorted({name for table in tables for name in table}):
        yield f"{kind} {name}", [str(table.get(name, NONE)) for table in tables]


def _suspect(name: str, values: Sequence[str], change: int) -> ChangedFact | None:
    switched = [place for place, (one, other) in enumerate(pairwise(values), 1) if one != other]
    if not switched:
        return None
    nearest = min(switched, key=lambda place: abs(place - change))
    off = abs(nearest - change)
    smaller = min(change, len(values) - change)
    if off > min(max(OFF_MIN, round(SPREAD * smaller)), OFF_MAX):
        return None
    codes = pd.factorize(np.array(values, dtype=object))[0]
    is_since = np.arange(len(values)) >= change
    agreement = _agreement(codes, is_since)
    by_chance = min(1.0, len(switched) * (2 * off + 1) / (len(values) - 1))
    exactness = agreement * (1 - by_chance)
    if agreement < AGREEING or exactness < EXACT:
        return None
    return ChangedFact(name, values[nearest - 1], values[nearest], exactness, agreement, off, len(switched))


def _agreement(codes: NDArray[np.int64], is_since: NDArray[np.bool_]) -> float:
    """The share of runs whose value's other runs are mostly on their side of the change, the mean of both sides."""
    total = np.bincount(codes)[codes] - 1
    later = np.bincount(codes, is_since)[codes] - is_since
    share: Floats = later / np.maximum(total, 1)
    agrees = (total > 0) & np.where(is_since, share > 0.5, share < 0.5)
    return float((agrees[is_since].mean() + agrees[~is_since].mean()) / 2)
