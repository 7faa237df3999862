"""A next-run model whose trees learned from every run, on a Dask cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, Future, KilledWorker, as_completed

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.run_facts import wanting_facts
from crosswind.data.store.store import Store
from crosswind.models.next_run.describe import Kinds
from crosswind.models.next_run.fit import train
from crosswind.models.next_run.run_trees import Encoding, Narrow, RunTrees
from crosswind.models.registry.trainer import Trained
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.trees import Trees
from crosswind.models.training.cluster import columns, encoding, features
from crosswind.models.training.cluster.address import StoreAddress
from crosswind.models.training.cluster.boosting import ROUNDS, Rows, boosted
from crosswind.models.training.cluster.connect import ClusterOptions, connected
from crosswind.models.training.cluster.partitions import END_NS, RUNS_AT_ONCE, Partition, partitions_of
from crosswind.models.training.cluster.versions import submit

TRIED_MIN = 8  # rows of cohorts not learned from; fewer say nothing about the errors
ERRORS_MAX = 2000  # of a partition
SAMPLED_RUNS = 1000  # newest ones, among which a run is sought whose nodes were sampled
NAMED_MAX = 5  # damaged partitions that an error names
LEAVE_OUT = "--leave-out-damaged"


@dataclass
class Report:
    """The work as far as it is done: `done` of `total` of `what`, a share of all work, and what was left out."""

    what: str = "waiting for a worker"
    done: int = 0
    total: int = 0
    share: float = 0.0
    left_out: list[str] = field(default_factory=list)

    def at(self, what: str, done: int, total: int, *, begin: float, end: float) -> None:
        """Note that `done` of `total` are done in the part of all work from `begin` to `end`."""
        self.what, self.done, self.total = what, done, total
        self.share = begin + (end - begin) * done / max(total, 1)

    def look(self) -> tuple[float, str]:
        """Return the share of all work that is done, in %, and the part of it in progress."""
        return 100 * self.share, f"{self.what} {self.done} of {self.total}" if self.total else self.what


@dataclass(frozen=True)
class Features:
    """The features of all runs, on the workers, by partition."""

    client: Client = field(repr=False)
    kinds: Kinds
    frames: tuple[Future, ...]


@dataclass(frozen=True)
class ClusterTraining:
    """A training on the cluster `where`; damaged partitions end it, or are left out on request."""

    where: str
    options: ClusterOptions
    leaves_out_damaged: bool = False
    report: Report = field(default_factory=Report)

    def __call__(self, store: Store, outcome: Outcome) -> Trained:
        """Train a model. Raises: as `connected`, `features_of` and `fit.train`."""
        if outcome is Outcome.JOB:
            raise InvalidInputError(
                f"--cluster with {outcome}: expected an outcome of runs; jobs are few enough for one process"
            )
        try:
            with connected(self.where, self.options) as client:
                report, leaves_out = self.report, self.leaves_out_damaged
                every = features_of(client, store, outcome, report=report, leaves_out_damaged=leaves_out)
                return self._trained(store, outcome, every)
        except KilledWorker as error:
            raise UnavailableError(
                f"{error.allowed_failures + 1} workers died of the same work: expected more memory, as of "
                f"CROSSWIND_CLUSTER_MEMORY={self.options.memory}, or what their logs say"
            ) from error

    def _trained(self, store: Store, outcome: Outcome, every: Features) -> Trained:
        trained = train(store, outcome, lambda until_ns: trees_of(every, until_ns, self.report))
        if not self.report.left_out:
            return trained
        learned = trained.evidence.learned
        sources = {**learned.sources, "left_out": f"{len(self.report.left_out)} damaged partitions"}
        return replace(trained, evidence=replace(trained.evidence, learned=replace(learned, sources=sources)))


def features_of(  # noqa: PLR0913
    client: Client,
    store: Store,
    outcome: Outcome,
    *,
    report: Report,
    leaves_out_damaged: bool = False,
    runs_at_once: int = RUNS_AT_ONCE,
) -> Features:
    """Describe every completed run on the workers; nothing but the names of columns comes back.

    Raises: MalformedError naming the partitions that cannot be read, unless they are left out; InvalidInputError
        without a run; UnavailableError where a worker cannot open the store.
    """
    source = features.Source(StoreAddress.of(store), outcome, _sampled_in(store))
    partitions = partitions_of(store, runs_at_once)
    surveys = [submit(client, features.survey, source, partition, pure=False) for partition in partitions]
    errors = _waited(surveys, lambda done: report.at("features", done, 2 * len(surveys), begin=0.0, end=0.4))
    damaged = [
        f"{_named(partition)}: {errors[future.key]}"
        for partition, future in zip(partitions, surveys, strict=True)
        if future.key in errors
    ]
    if damaged and not leaves_out_damaged:
        raise MalformedError(
            f"{len(damaged)} of {len(partitions)} partitions cannot be read: {'; '.join(damaged[:NAMED_MAX])}; "
            f"{LEAVE_OUT} learns from the others"
        )
    report.left_out[:] = damaged
    kept = [
        (partition, future) for partition, future in zip(partitions, surveys, strict=True) if future.key not in errors
    ]
    seen = columns.together(client.gather([submit(client, _columns, future) for _, future in kept]))
    if not seen.rows:
        raise InvalidInputError(f"no completed run has {outcome}: there is nothing to learn from")
    kinds = seen.kinds
    frames = [submit(client, _features, source, partition, future, kinds, pure=False) for partition, future in kept]
    _waited(frames, lambda done: report.at("features", len(frames) + done, 2 * len(frames), begin=0.0, end=0.4))
    return Features(client, kinds, tuple(frames))


def trees_of(every: Features, until_ns: int | None, report: Report) -> RunTrees | None:
    """Return trees over the runs that ended by `until_ns`, or over all; None with too few cohorts to try them on."""
    client, begin, end = every.client, *((0.4, 0.7) if until_ns is not None else (0.7, 1.0))
    summaries = client.gather([submit(client, encoding.summarised, frame, until_ns) for frame in every.frames])
    bins = encoding.encoding_of(summaries, list(every.kinds))
    held = submit(client, _itself, bins)
    parts = [submit(client, rows_of, frame, held, until_ns) for frame in every.frames]
    sized = [(part, summary.rows) for part, summary in zip(parts, summaries, strict=True) if summary.rows]
    booster = boosted(
        Rows(client, sized, len(bins.cuts)), lambda done: report.at("trees", done, ROUNDS, begin=begin, end=end)
    )
    trees = Trees.of(booster, len(bins.cuts))
    grown = submit(client, _itself, trees)
    errors = np.concatenate(
        client.gather([submit(client, errors_of, frame, held, grown, until_ns) for frame in every.frames])
    )
    if len(errors) < TRIED_MIN:
        return None
    offsets: Floats = np.quantile(errors, LEVELS)
    return RunTrees(every.kinds, bins, trees, offsets, sum(rows for _, rows in sized))


def rows_of(
    frame: pd.DataFrame, bins: Encoding, until_ns: int | None, *, is_tried: bool = False
) -> tuple[Narrow, Narrow]:
    """Return X (n_rows, n_columns) and y (n_rows,), log seconds less their mean, of a partition's rows."""
    rows = features.learned(frame, until_ns, is_tried=is_tried)
    return bins.matrix(rows), (rows[features.LOG_SECONDS].to_numpy(np.float64) - bins.centre).astype(np.float32)


def errors_of(frame: pd.DataFrame, bins: Encoding, trees: Trees, until_ns: int | None) -> Floats:
    """Return errors of log seconds on rows of cohorts that the trees did not learn from, (n_errors,)."""
    X, y = rows_of(frame, bins, until_ns, is_tried=True)
    some = np.unique(np.linspace(0, max(len(y) - 1, 0), min(ERRORS_MAX, len(y))).astype(np.int64))
    errors: Floats = y[some] - trees.inplace_predict(X[some].astype(np.float64))
    return errors


def _itself(value: Any) -> Any:
    """Return what all workers need, as a task: Dask does not bring back what was scattered to a worker that is lost."""
    return value


def _columns(survey: features.Survey) -> columns.ColumnsSeen:
    return survey.columns


def _features(source: features.Source, partition: Partition, survey: features.Survey, kinds: Kinds) -> pd.DataFrame:
    return features.features(source, partition, survey.seconds, kinds)


def _waited(futures: Sequence[Future], report: Callable[[int], None]) -> dict[str, str]:
    """Wait for all, and return by their keys the errors of those that could not be read; others are raised."""
    errors: dict[str, str] = {}
    for done, future in enumerate(as_completed(futures), start=1):
        report(done)
        error: Any = future.exception()
        if isinstance(error, MalformedError):
            errors[future.key] = str(error).partition("\n")[0]
        elif error is not None:
            raise error
    return errors


def _sampled_in(store: Store) -> Any:
    newest = all_runs(store, RunFilter(state=RunState.COMPLETED), limit=SAMPLED_RUNS)
    return next((run for run in reversed(wanting_facts(newest)) if run.nodes and run.started_ns), None)


def _named(partition: Partition) -> str:
    began, ended = (np.datetime_as_string(np.datetime64(moment, "ns"), "s") for moment in partition)
    return f"runs from {began}" + ("" if partition[1] == END_NS else f" to {ended}")
