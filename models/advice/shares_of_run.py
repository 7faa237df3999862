"""Division of a run's batch among its ranks so that they finish together, and what that would gain."""

import math

import numpy as np
import pandas as pd

from crosswind.data.lake.steps_summary import rank_steps, time_of, window_of
from crosswind.data.schema.answers.advice import BatchShares, RankShare
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.question import BATCH_MAX, DEGREES
from crosswind.data.schema.run import Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.analytic.shares import Pace, batch_shares

STEPS_MIN = 20
STEPS_READ = 500  # the newest of the run
BLOCKS = 5  # of time: each is judged with shares from the others
GLOBAL = ("global_batch", "global_batch_size")
A_RANK = ("batch", "batch_size")
MICRO = ("micro_batch", "micro_batch_size")
ACCUMULATION = ("accumulation_steps", "gradient_accumulation_steps")
RESAMPLES = 1000
_EXTENT = """
select max(step) as last, list(distinct rank order by rank) as ranks from step
where run_id = ? and rank is not null and step >= ?
"""


def shares_of_run(
    store: Store, run_id: str, batch: int | None = None, *, now_batch: int | None = None, seed: int = 0
) -> BatchShares:
    """Samples a rank for a batch of all ranks together (None: as large as now), from compute seconds in proportion.

    `now_batch` is what all ranks together took when the run was measured; None means as its parameters say. Raises:
    NotFoundError; InvalidInputError where too few steps are recorded, the present batch is not known, the batch is
    smaller than the ranks, or ranks share samples.
    """
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
        nodes = {rank.rank: rank.node for rank in session.ranks.of(run_id)}
    compute, duration, ranks = _measured(store, run)
    _check_independent(run)
    now, present = (float(now_batch), "now_batch") if now_batch is not None else _present(run, len(ranks))
    _check_batches(now, batch, len(ranks))
    wanted = batch if batch is not None else round(now)
    each_now = now / len(ranks)
    per_sample = compute / each_now
    equal = _equal(wanted, len(ranks))
    shares = _shares(per_sample, wanted)
    old, new = _judged(per_sample, duration - compute.max(axis=1), wanted)
    low, high = _interval(old, new, seed)
    usual = np.median(per_sample, axis=0)
    return BatchShares(
        *(run_id, wanted, now, present, len(compute)),
        tuple(
            RankShare(rank, nodes.get(rank), float(pace * each_now), each_now, before, after, float(pace * after))
            for rank, pace, before, after in zip(ranks, usual, equal, shares, strict=True)
        ),
        *(float(old.mean()), float(new.mean()), float(1 - new.sum() / old.sum()), low, high),
        _warnings(wanted, now, low),
    )


def _measured(store: Store, run: Run) -> tuple[Floats, Floats, list[int]]:
    """Compute seconds of the newest steps (n_steps, n_ranks), their durations (n_steps,), and the ranks."""
    extent = store.lake.frame(_EXTENT, [run.run_id, WARM_UP_STEPS], within=time_of([run])).iloc[0]
    if pd.isna(extent["last"]):
        raise InvalidInputError(
            f"run {run.run_id}: no step after its first {WARM_UP_STEPS} is recorded, expected at least {STEPS_MIN}"
        )
    ranks = [int(rank) for rank in extent["ranks"]]
    if run.world_size is not None and len(ranks) != run.world_size:
        raise InvalidInputError(
            f"run {run.run_id}: steps of {len(ranks)} ranks are recorded, expected {run.world_size}"
        )
    window = window_of(run, max(int(extent["last"]) - STEPS_READ + 1, WARM_UP_STEPS), int(extent["last"]))
    columns = ("rank", "step", "compute_seconds", "duration_seconds")
    rows = rank_steps(store.lake, run.run_id, (), window, columns=columns)
    wide = rows.groupby(["step", "rank"])[["compute_seconds", "duration_seconds"]].max().unstack("rank").dropna()
    compute = wide["compute_seconds"].to_numpy(np.float64)
    if len(compute) < STEPS_MIN or np.any(np.median(compute, axis=0) <= 0):
        raise InvalidInputError(
            f"run {run.run_id}: {len(compute)} steps tell every rank's compute seconds, expected at least {STEPS_MIN} "
            "with compute seconds above 0"
        )
    return compute, wide["duration_seconds"].to_numpy(np.float64).max(axis=1), ranks


def _check_independent(run: Run) -> None:
    for kind in ("tensor", "pipeline"):
        for name in DEGREES[kind]:
            degree = run.configuration.get(name, 1)
            if degree != 1:
                raise InvalidInputError(
                    f"run {run.run_id}: configuration {name} is {degree!r}, expected 1: its ranks share samples"
                )


def _present(run: Run, ranks: int) -> tuple[float, str]:
    """Samples a step of all ranks together, and the parameters they follow from. Raises: InvalidInputError."""
    counts = {
        name: _count(run, name) for name in (*GLOBAL, *A_RANK, *MICRO, *ACCUMULATION) if name in run.configuration
    }
    steps = next(((counts[name], f" x {name}") for name in ACCUMULATION if name in counts), (1.0, ""))
    for names, factor, words in (
        (GLOBAL, 1.0, ""),
        (A_RANK, ranks, f" x {ranks} ranks"),
        (MICRO, steps[0] * ranks, f"{steps[1]} x {ranks} ranks"),
    ):
        for name in names:
            if name in counts:
                return counts[name] * factor, name + words
    raise InvalidInputError(
        f"run {run.run_id}: none of its parameters {', '.join(run.configuration) or '(it has none)'} is "
        f"{', '.join((*A_RANK, *MICRO, *GLOBAL))}, expected now_batch, the samples a step of all ranks together"
    )


def _count(run: Run, name: str) -> float:
    value = run.configuration[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 1:
        raise InvalidInputError(f"run {run.run_id}: configuration {name} is {value!r}, expected a number from 1 on")
    return float(value)


def _check_batches(now: float, batch: int | None, ranks: int) -> None:
    for name, value in (("now_batch", now), ("batch", batch)):
        if value is not None and not ranks <= value <= BATCH_MAX:
            raise InvalidInputError(f"{name} {value:g}: expected {ranks}, one for each rank, to {BATCH_MAX}")


def _equal(batch: int, ranks: int) -> list[int]:
    return [batch // ranks + (rank < batch % ranks) for rank in range(ranks)]


def _shares(per_sample: Floats, batch: int) -> list[int]:
    return batch_shares([Pace(float(pace)) for pace in np.median(per_sample, axis=0)], batch)


def _judged(per_sample: Floats, rest: Floats, batch: int) -> tuple[Floats, Floats]:
    """Seconds of the steps with equal shares, and with shares from the steps of all other blocks; (n_steps,) each."""
    equal = np.array(_equal(batch, per_sample.shape[1]))
    new = np.empty(len(rest))
    for block in np.array_split(np.arange(len(rest)), BLOCKS):
        others = np.delete(per_sample, block, axis=0)
        new[block] = (per_sample[block] * _shares(others, batch)).max(axis=1)
    return rest + (per_sample * equal).max(axis=1), rest + new


def _interval(old: Floats, new: Floats, seed: int) -> tuple[float, float]:
    """The 90 % interval of the gain, by resampling blocks of neighbouring steps, which are alike (Kuensch 1989)."""
    length = math.ceil(math.sqrt(len(old)))
    draw = np.random.default_rng(seed)
    starts = draw.integers(0, len(old) - length + 1, (RESAMPLES, math.ceil(len(old) / length)))
    chosen = (starts[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)
    gains = 1 - new[chosen].sum(axis=1) / old[chosen].sum(axis=1)
    low, high = np.quantile(gains, (0.05, 0.95))
    return float(low), float(high)


def _warnings(batch: int, now: float, low: float) -> tuple[str, ...]:
    warnings = [
        "compute seconds are taken to grow in proportion to samples, and all else of a step to stay as it is: the "
        "interval tells how steps differ, not how far this is from true, and the real gain is often smaller"
    ]
    if low <= 0:
        warnings.append("the interval of the gain holds 0: equal shares may be as good")
    if not 0.5 <= batch / now <= 2:
        warnings.append(
            f"batch {batch} is far from the {now:g} that was measured: times are carried over in proportion"
        )
    return tuple(warnings)
