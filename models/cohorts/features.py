"""Stored features of runs as columns: outcomes, evidence of explanations, configuration, nodes, software."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.cohorts import FeatureKind
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import COMPARED_SAMPLES, IN_SEGMENTS, OWN_COLUMNS
from crosswind.models.explain.cohort.features import Features
from crosswind.models.explain.cohort.read import stored_features
from crosswind.models.explain.evidence.step_columns import OTHER_THREADS, PHASES, THREAD

OF_VERDICTS = ("step_p50_seconds", "step_mean_seconds", "step_cov_ratio", "excess_seconds")
QUARTER_HOURS = 6  # of a day
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
VALUES_MAX = 200  # yes-or-no columns of one kind, those of most runs
Key = tuple[FeatureKind, str]
Column = Mapping[int, float]  # by the run's place
SAMPLES = tuple(one.column for one in COMPARED_SAMPLES)
OF_THREADS = tuple(name for name, column in THREAD.items() if column.endswith("_seconds"))
OF_SEGMENTS = tuple(column for one in IN_SEGMENTS for column in one.columns)
TIMES = frozenset({*PHASES, *OF_THREADS, OTHER_THREADS, *OF_SEGMENTS})  # of the evidence what is seconds a step


def feature_columns(store: Store, runs: Sequence[Run]) -> dict[Key, "pd.Series[float]"]:
    """Return the features that are stored of runs, a series indexed by the run's place each, NaN where missing."""
    columns = {**_outcomes(store, runs), **_evidence(store, runs)}
    series = {key: pd.Series(column, dtype=np.float64).reindex(range(len(runs))) for key, column in columns.items()}
    return {**series, **_facts(runs)}


def _outcomes(store: Store, runs: Sequence[Run]) -> dict[Key, Column]:
    with store.catalog.read() as session:
        judged = session.verdicts.get([run.run_id for run in runs])
    columns: dict[Key, dict[int, float]] = {(FeatureKind.OUTCOME, "run_seconds"): {}}
    for place, run in enumerate(runs):
        own = judged.get(run.run_id)
        values = {name: getattr(own, name, None) for name in OF_VERDICTS} | {"run_seconds": run.seconds}
        for name, value in values.items():
            if value is not None:
                columns.setdefault((FeatureKind.OUTCOME, name), {})[place] = float(value)
    return dict(columns)


def _evidence(store: Store, runs: Sequence[Run]) -> dict[Key, Column]:
    """Return the means over the segments of each run, seconds or counts a step, and what was sampled."""
    stored = stored_features(store, [run.run_id for run in runs])
    columns: dict[Key, dict[int, float]] = {}
    for place, run in enumerate(runs):
        features = stored.get(run.run_id)
        for name, value in _means(features) if features else ():
            if np.isfinite(value):
                columns.setdefault((FeatureKind.EVIDENCE, name), {})[place] = float(value)
    return dict(columns)


def _means(features: Features) -> Iterator[tuple[str, float]]:
    own = features.segments
    yield from zip(OWN_COLUMNS, own.values.mean(axis=0).tolist(), strict=True)
    yield from ((name, value) for name, value in own.samples.items() if name not in OWN_COLUMNS)


def _facts(runs: Sequence[Run]) -> dict[Key, "pd.Series[float]"]:
    """Return what was run, where, when and with what: numbers as they are, all else as a yes or no for each value."""
    configurations = [{**run.configuration, "ranks": run.world_size} for run in runs]
    columns = _parameters(FeatureKind.CONFIGURATION, configurations)
    columns |= _parameters(FeatureKind.FACT, [run.facts.given for run in runs])
    nodes = [[f"node={node}" for node in run.nodes] for run in runs]
    software = [[f"{name}={version}" for name, version in run.software.items()] for run in runs]
    chosen = {**_choices(FeatureKind.NODE, nodes), **_choices(FeatureKind.SOFTWARE, software)}
    return {**columns, **chosen, **_choices(FeatureKind.TIME, [_times(run) for run in runs])}


def _times(run: Run) -> list[str]:
    """Return the quarter of the day and the day of the week in which a run began, UTC."""
    if run.started_ns is None:
        return []
    began = datetime.fromtimestamp(run.started_ns / 1e9, tz=UTC)
    first = began.hour // QUARTER_HOURS * QUARTER_HOURS
    return [f"hours={first:02} to {first + QUARTER_HOURS:02} UTC", f"weekday={DAYS[began.weekday()]}"]


def _parameters(kind: FeatureKind, given: Sequence[Mapping[str, Scalar]]) -> dict[Key, "pd.Series[float]"]:
    columns: dict[Key, pd.Series[float]] = {}
    for name in sorted({name for one in given for name in one}):
        columns |= _parameter(kind, name, [one.get(name) for one in given])
    return columns


def _parameter(kind: FeatureKind, name: str, values: Sequence[Scalar]) -> dict[Key, "pd.Series[float]"]:
    stated = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in stated):
        numbers = pd.Series([np.nan if value is None else float(value) for value in values])
        return {(kind, name): numbers} if stated else {}
    return _choices(kind, [[] if value is None else [f"{name}={value}"] for value in values])


def _choices(kind: FeatureKind, of_runs: Sequence[Iterable[str]]) -> dict[Key, "pd.Series[float]"]:
    counts = Counter(value for values in of_runs for value in values)
    chosen = [value for value, _ in counts.most_common(VALUES_MAX)]
    return {(kind, value): pd.Series([float(value in values) for values in of_runs]) for value in chosen}
