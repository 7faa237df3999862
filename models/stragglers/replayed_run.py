"""A stored run replayed with equal ranks: from the operations of its ranks, or else from their steps and waits."""

from collections.abc import Iterable

import pandas as pd

from crosswind.data.lake.steps_summary import per_step, window_of
from crosswind.data.schema.answers.stragglers import ReplayBasis, ReplayedPart, RunReplay
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.stragglers.operations import has_chunks, operations_of, operations_per_step, sequence_imbalance
from crosswind.models.stragglers.replay import OperationReplay
from crosswind.models.stragglers.replayed_steps import replayed_steps
from crosswind.models.stragglers.stages import stage_numbers

WORK_MAX = 20_000_000  # operations times replays: some ten seconds
OPERATIONS_MAX = 2_000_000  # in memory
RANKS_REPLAYED = 64  # one by one: those whose operations take longest against their peers'


def replayed_run(store: Store, run_id: str) -> RunReplay:
    """Replay a run from all that is stored of it.

    Raises: NotFoundError, MalformedError, InvalidInputError for a run of which neither operations nor waits are stored.
    """
    with store.catalog.read() as session:
        run, recorded = session.runs.get(run_id), session.ranks.of(run_id)
    counts = operations_per_step(store, run)
    if len(counts):
        return _of_operations(store, run, counts)
    named = max((rank.rank for rank in recorded), default=0) + 1
    return _of_steps(store, run, max(run.world_size or 1, named))


def _of_operations(store: Store, run: Run, counts: pd.Series) -> RunReplay:
    fitting = counts[counts.cumsum() <= OPERATIONS_MAX]
    if fitting.empty:
        raise InvalidInputError(
            f"run {run.run_id!r}: {counts.iloc[0]} operations in a step, expected {OPERATIONS_MAX} at most"
        )
    operations = operations_of(store, run, int(fitting.index.min()))
    ranks, stages = (sorted(int(value) for value in operations[name].unique()) for name in ("rank", "stage"))
    replays = 2 + 2 * min(len(ranks), RANKS_REPLAYED) + 2 * len(stages)
    kept = counts[counts.cumsum() * replays <= WORK_MAX]
    first = int(kept.index.min()) if len(kept) else int(counts.index.max())
    operations = operations[operations["step"] >= first]
    replay = OperationReplay.of(operations)
    measured, ideal = replay.measured_seconds, replay.ideal_seconds
    if ideal <= 0:
        raise InvalidInputError(f"run {run.run_id!r}: its operations take no time, expected seconds above 0")
    slowest = replay.slowest_ranks()[:RANKS_REPLAYED]
    return RunReplay(
        run.run_id,
        ReplayBasis.OPERATIONS,
        measured / ideal,
        measured,
        int(operations["step"].nunique()),
        len(ranks),
        _worst(_part(replay, "rank", rank) for rank in slowest),
        _worst(_part(replay, "stage", stage) for stage in stages) if len(stages) > 1 else (),
        sequence_imbalance(operations),
        tuple(_warnings(operations, len(counts), len(ranks))),
    )


def _part(replay: OperationReplay, column: str, number: int) -> ReplayedPart:
    alone = replay.alone_seconds(column, number) / replay.ideal_seconds
    return ReplayedPart(number, alone, replay.measured_seconds / replay.mended_seconds(column, number))


def _warnings(operations: pd.DataFrame, steps: int, ranks: int) -> list[str]:
    warnings = []
    replayed = int(operations["step"].nunique())
    if replayed < steps:
        warnings.append(f"the newest {replayed} of {steps} steps were replayed")
    if ranks > RANKS_REPLAYED:
        warnings.append(f"of {ranks} ranks, the {RANKS_REPLAYED} that take longest were replayed one by one")
    if has_chunks(operations):
        warnings.append("ranks hold several parts of the model: transfers between stages count as each rank's own")
    if not operations["meeting"].notna().any():
        warnings.append("no operation is known to meet another: ranks are compared as if they never waited")
    return warnings


def _of_steps(store: Store, run: Run, ranks: int) -> RunReplay:
    steps = per_step(store.lake, run.run_id, window_of(run))["step"]
    stages = stage_numbers(store, run, ranks)
    replay = None
    if len(steps) and ranks > 1:
        replay = replayed_steps(store, run, ranks, int(steps.iloc[-1]), stages=stages)
    if replay is None:
        raise InvalidInputError(
            f"run {run.run_id!r}: no steps after warm-up in which each of {ranks} ranks recorded its waits, "
            "expected those (run.watch(model)), or operations (crosswind ingest of a table of them)"
        )
    slowdown = replay.slowdown
    by_rank = zip(slowdown.alone, slowdown.without, strict=True)
    of_stages = slowdown.of_group if stages is not None and len(slowdown.of_group) > 1 else ()
    return RunReplay(
        run.run_id,
        ReplayBasis.STEPS,
        slowdown.whole,
        replay.step_seconds,
        replay.steps,
        ranks,
        _worst(ReplayedPart(rank, alone, mended) for rank, (alone, mended) in enumerate(by_rank)),
        _worst(ReplayedPart(stage, alone, None) for stage, alone in enumerate(of_stages)),
        None,
        (),
    )


def _worst(parts: Iterable[ReplayedPart]) -> tuple[ReplayedPart, ...]:
    return tuple(sorted(parts, key=lambda part: (-part.alone_ratio, part.number)))
