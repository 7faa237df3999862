"""The peers of runs: others of their cohorts that have ended, with the features that are stored of them.

Features that are not stored, or are of what was stored of their run before, are computed and stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.store.features import outcomes
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.features import FORM, Features
from crosswind.models.explain.cohort.own_segments import OwnSegments, condensed
from crosswind.models.explain.cohort.read import nodes_of, read_own_segments, stored_features
from crosswind.models.explain.cohort.step_rows import ranks_of, spans_of

PEERS = 200  # of a run, those that began nearest to it: more hardly move what is expected, and cost time
READ_AT_ONCE = 10  # runs whose steps and samples are read together, or more that are short: a query has its price
SHORT_AT_ONCE, SHORT_SECONDS = 50, 20_000  # short runs at most, and how long their nodes were at work in sum
WHOLE_BYTES = 50_000_000  # of the segments of runs that nobody asked for
OF_STEPS = ("steps", "step_p50_seconds", "step_mean_seconds", "step_cov_ratio")


@dataclass(frozen=True)
class Cohort:
    """Runs to explain, and all runs that they are compared with, themselves included, in the order of time.

    `whole` are the segments of those to explain, `features` those of all runs, both of those that recorded collectives;
    `revisions` say of which state of the store the runs to explain were read, as `Verdicts.revisions`.
    """

    wanted: tuple[Run, ...]
    members: tuple[Run, ...]
    revisions: Mapping[str, tuple[int, int]]
    whole: Mapping[str, OwnSegments]
    features: Mapping[str, Features]


@dataclass
class _Read:
    """Segments and features of runs that were read; `last_ns` is when the last step of each began."""

    whole: dict[str, OwnSegments] = field(default_factory=dict)
    features: dict[str, Features] = field(default_factory=dict)
    last_ns: dict[str, int] = field(default_factory=dict)

    def add(self, more: "_Read", wanted: set[str]) -> None:
        """Add features of other runs; whole segments, which are large, of those that are wanted."""
        self.features |= more.features
        self.whole |= {run_id: own for run_id, own in more.whole.items() if run_id in wanted}

    @property
    def is_large(self) -> bool:
        """Return whether the whole segments take more than WHOLE_BYTES."""
        return sum(own.values.nbytes + own.peers.nbytes for own in self.whole.values()) > WHOLE_BYTES


def cohorts_of(
    store: Store, runs: Sequence[Run], between: Callable[[], None] = lambda: None, *, with_peers: bool = False
) -> Iterator[Cohort]:
    """Yield the runs with their peers, those together that have the same; `between` is called now and then.

    With `with_peers` short runs of the same cohort that have to be read are wanted, too. Raises: MalformedError; as
    `between`.
    """
    groups: dict[frozenset[str], set[str]] = {}
    with store.catalog.read() as session:
        for run in runs:
            group = frozenset((run.run_id, *session.runs.near(run, limit=PEERS)))
            groups.setdefault(group, set()).add(run.run_id)
    for run_ids, wanted in groups.items():
        is_whole_cohort = len(run_ids) <= PEERS  # then every run of it has the same peers
        yield _cohort(store, run_ids, wanted, between, with_peers=with_peers and is_whole_cohort)


def _cohort(
    store: Store, run_ids: frozenset[str], wanted: set[str], between: Callable[[], None], *, with_peers: bool
) -> Cohort:
    with store.catalog.read() as session:
        runs = session.runs.some(run_ids)
        made = session.verdicts.with_features(run_ids, FORM)
    members = [run for run in runs if run.run_id in wanted or run.state is not RunState.RUNNING]
    computed = _Read()
    lacking = [run for run in members if run.run_id not in made]
    for together in _together(lacking):
        between()
        if with_peers and not computed.is_large:
            wanted = wanted | {run.run_id for run in together}
        computed.add(_computed(store, together), wanted)
    with store.catalog.read() as session:
        revisions = session.verdicts.revisions(wanted)
    unread = [run for run in members if run.run_id in wanted & made]
    read = _read(store, unread) if unread else _Read()
    stored = stored_features(store, {run.run_id for run in members} & made)
    features = computed.features | {run_id: one for run_id, one in stored.items() if one is not None}
    whole = {run_id: own for run_id, own in (computed.whole | read.whole).items() if run_id in features}
    asked = tuple(run for run in members if run.run_id in wanted)
    return Cohort(asked, tuple(members), revisions, whole, features)


def _together(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield runs that are read together, in their order."""
    together: list[Run] = []
    for run in runs:
        together.append(run)
        is_short = sum(map(_node_seconds, together)) <= SHORT_SECONDS
        if len(together) >= (SHORT_AT_ONCE if is_short else READ_AT_ONCE):
            yield together
            together = []
    if together:
        yield together


def _node_seconds(run: Run) -> float:
    """Return how long the nodes of a run were at work, in sum."""
    if run.started_ns is None or run.ended_ns is None:
        return float("inf")
    return (run.ended_ns - run.started_ns) * 1e-9 * len(run.nodes)


def _computed(store: Store, runs: Sequence[Run]) -> _Read:
    """Read runs, and store the features of those that have ended."""
    with store.catalog.read() as session:
        revisions = session.verdicts.revisions({run.run_id for run in runs})
    read = _read(store, runs)
    with suppress(*NO_ANSWER):  # a store that is another's: the features are computed the next time, too
        _store(store, [run for run in runs if run.run_id in revisions], read, revisions)
    return read


def _read(store: Store, runs: Sequence[Run]) -> _Read:
    ranks, spans = ranks_of(store, runs), spans_of(store, runs)
    nodes, whole = nodes_of(ranks), dict(read_own_segments(store, runs, ranks, spans))
    features = {run_id: Features(condensed(own), nodes.get(run_id, {})) for run_id, own in whole.items()}
    return _Read(whole, features, dict(spans.groupby("run_id")["end_ns"].max()))


def _store(store: Store, runs: Sequence[Run], read: _Read, revisions: Mapping[str, tuple[int, int]]) -> None:
    made = []
    for run, outcome in zip(runs, outcomes(store, runs), strict=True):
        features = read.features.get(run.run_id)
        content = None if features is None else features.packed()
        verdict = RunVerdict(run.run_id, **{name: getattr(outcome, name) for name in OF_STEPS})
        last_ns = int(read.last_ns.get(run.run_id, 0))
        made.append(StoredFeatures(verdict, revisions[run.run_id][0], FORM, content, last_ns))
    with store.catalog.read() as session:
        near = {run.run_id: session.runs.near(run, limit=PEERS) for run in runs}
    with store.catalog.write() as session:
        session.verdicts.put_features(made, near)
