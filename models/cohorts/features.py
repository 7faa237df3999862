"""Stored features of runs as columns: outcomes, evidence of explanations, configuration, nodes, software."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.cohorts import FeatureKind
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import COMPARED_SAMPLES, OWN_COLUMNS
from crosswind.models.explain.cohort.features import Features
from crosswind.models.explain.cohort.read import stored_features

OF_VERDICTS = ("step_p50_seconds", "step_mean_seconds", "step_cov_ratio", "excess_seconds")
VALUES_MAX = 200  # yes-or-no columns of one kind, those of most runs
Key = tuple[FeatureKind, str]
Column = Mapping[int, float]  # by the run's place
SAMPLES = tuple(one.column for one in COMPARED_SAMPLES)


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
    """Return what was run, where and with what: numbers as they are, and all else as one yes or no for each value."""
    columns: dict[Key, pd.Series[float]] = {}
    configurations = [{**run.configuration, "ranks": run.world_size} for run in runs]
    for name in sorted({name for one in configurations for name in one}):
        columns |= _parameter(name, [one.get(name) for one in configurations])
    nodes = [[f"node={node}" for node in run.nodes] for run in runs]
    software = [[f"{name}={version}" for name, version in run.software.items()] for run in runs]
    return {**columns, **_choices(FeatureKind.NODE, nodes), **_choices(FeatureKind.SOFTWARE, software)}


def _parameter(name: str, values: Sequence[Scalar]) -> dict[Key, "pd.Series[float]"]:
    stated = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in stated):
        numbers = pd.Series([np.nan if value is None else float(value) for value in values])
        return {(FeatureKind.CONFIGURATION, name): numbers} if stated else {}
    return _choices(FeatureKind.CONFIGURATION, [[] if value is None else [f"{name}={value}"] for value in values])


def _choices(kind: FeatureKind, of_runs: Sequence[Iterable[str]]) -> dict[Key, "pd.Series[float]"]:
    counts = Counter(value for values in of_runs for value in values)
    chosen = [value for value, _ in counts.most_common(VALUES_MAX)]
    return {(kind, value): pd.Series([float(value in values) for values in of_runs]) for value in chosen}
