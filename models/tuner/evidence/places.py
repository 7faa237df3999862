"""Comparable runs grouped by place: those of the study's own place are trials, those of another place a source."""

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Configuration, Trial, TrialState
from crosswind.models.tuner.evidence.query import RunQuery
from crosswind.models.tuner.evidence.run_outcomes import OF_PLACE
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space

Descriptors = Mapping[str, Mapping[str, float | str]]
PREFIX = "run-"  # of the trial ids that are made of run ids


@dataclass(frozen=True)
class Place:
    """A place where runs compare: one workload, system, scale, and the fixed parameters."""

    workload: str
    system: str
    world_size: int | None
    fixed: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Row:
    """A run, its values of the space's parameters, and its objective, None where it failed."""

    run: Run
    configuration: Configuration
    objective: float | None


def sources_and_trials(
    rows: Iterable[Row], query: RunQuery, systems: Descriptors
) -> tuple[tuple[Source, ...], tuple[Trial, ...]]:
    """Return the sources, the nearest first, and the trials that rows make; `systems` describes every system."""
    own = Place(query.workload, query.system, query.world_size, tuple(sorted(query.fixed.items())))
    places: dict[Place, list[Row]] = {}
    for row in rows:
        places.setdefault(_place(row.run, query), []).append(row)
    trials = [_trial(row) for row in places.pop(own, [])]
    nearest = sorted(places.items(), key=lambda entry: _farness(entry[0], len(entry[1]), own))
    sources = [_source(place, of_place, query.space, systems) for place, of_place in nearest]
    return tuple(sources), tuple(trials)


def _place(run: Run, query: RunQuery) -> Place:
    fixed = [(name, run.configuration.get(name)) for name in sorted(query.fixed)]
    world_size = None if query.world_size is None else run.world_size
    return Place(run.workload, run.system, world_size, tuple(fixed))


def _farness(place: Place, rows: int, own: Place) -> tuple[bool, bool, bool, int, str]:
    """Order by the study's own workload, then its system, then what is fixed; of equals those with most runs first."""
    others = place.workload != own.workload, place.system != own.system, place.fixed != own.fixed
    return (*others, -rows, str(place))


def _trial(row: Row) -> Trial:
    state = TrialState.FAILED if row.objective is None else TrialState.DONE
    return Trial(row.configuration, state, row.objective, f"{PREFIX}{row.run.run_id}")


def _source(place: Place, rows: Sequence[Row], space: Space, systems: Descriptors) -> Source:
    """Return one row a configuration: the median of its runs that came to an end, a failure where none did."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(space.key(row.configuration), []).append(row)
    configurations = [of_one[0].configuration for of_one in groups.values()]
    objectives = [_median(row.objective for row in of_one) for of_one in groups.values()]
    scale = "" if place.world_size is None else f", {place.world_size} ranks"
    fixed = "".join(f", {name} {value}" for name, value in place.fixed)
    name = f"{place.workload} on {place.system}{scale}{fixed}"
    features = {**systems.get(place.system, {}), **_features(place, [row.run for row in rows])}
    return Source(name, configurations, objectives, features)


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def _features(place: Place, runs: Collection[Run]) -> dict[str, float | str]:
    """Return the shared description: workload, system, and of scale and fixed parameters what all runs share."""
    features: dict[str, float | str] = {"workload": place.workload, "system": place.system}
    shared: dict[str, set[object]] = dict(zip(OF_PLACE, (set(), set()), strict=True))
    for run in runs:
        shared["world_size"].add(run.world_size)
        shared["node_count"].add(len(run.nodes) or None)
    common = {name: next(iter(values)) for name, values in shared.items() if len(values) == 1}
    for name, value in (*common.items(), *place.fixed):
        if isinstance(value, str):
            features[name] = value
        elif isinstance(value, int | float):
            features[name] = float(value)
    return features
