"""Runs in progress, with their rates and expected ends."""

import time
from collections.abc import Sequence

from crosswind.dashboards.pages.overview.asked import Asked
from crosswind.dashboards.pages.overview.block import Block, Column, Kind, Link, Row, address_of
from crosswind.dashboards.wording import count
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Quantile
from crosswind.data.schema.answers.weather import Remaining
from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.forecast.running import remaining

RUNNING = 10  # newest runs in progress whose end is computed
SHORT = 16  # characters of an id that is shown whole
BAND = (0.05, 0.95)


def running(asked: Asked, *, is_whole: bool = True) -> Block:
    """Return the newest runs in progress, with their rates and expected ends if it `is_whole`."""
    wanted = RunFilter(asked.wanted.workload, asked.wanted.system, RunState.RUNNING)
    with asked.client.store.catalog.read() as session:
        total = session.runs.count(wanted)
        runs = session.runs.find(wanted, limit=RUNNING)
    if not runs:
        return Block(
            "running", "No run is in progress.", command="crosswind run -- torchrun --nproc-per-node 2 train.py"
        )
    ends = asked.client.compute(asked.client.store, ends_of, tuple(run.run_id for run in runs)) if is_whole else ()
    rows = tuple(_row(asked, run, end) for run, end in zip(runs, ends or [None] * len(runs), strict=True))
    shown = f"; the newest {len(rows)}" if total > len(rows) else ""
    return Block(
        "running",
        f"{count(total, 'run')} {'is' if total == 1 else 'are'} in progress{shown}.",
        (
            *(Column("Run"), Column("Workload"), Column("Nodes", Kind.NUMBER), Column("Began", Kind.MOMENT)),
            *(Column("Done", Kind.SHARE), Column("Step now", Kind.SECONDS)),
            *(
                Column("Ends about", Kind.MOMENT),
                Column("90 % from", Kind.MOMENT),
                Column("to", Kind.MOMENT),
            ),
        ),
        rows,
        (Link("All runs in progress", address_of("runs", {"state": RunState.RUNNING, **asked.scope})),),
        is_pending=not is_whole,
    )


def ends_of(store: Store, run_ids: Sequence[str]) -> tuple[tuple[int, Remaining | str], ...]:
    """Return for each run when that was computed, and its rest or why there is none."""
    return tuple((time.time_ns(), _rest(store, run_id)) for run_id in run_ids)


def _rest(store: Store, run_id: str) -> Remaining | str:
    try:
        return remaining(store, run_id)
    except ProjectError as error:
        return str(error).removeprefix(f"run {run_id}: ").partition(", expected")[0]


def _row(asked: Asked, run: Run, end: tuple[int, Remaining | str] | None) -> Row:
    name = run.run_id if len(run.run_id) <= SHORT else f"…{run.run_id[-8:]}"
    begun = (run.workload, len(run.nodes) or None, run.started_ns)
    address = address_of(f"runs/{run.run_id}", asked.scope)
    if end is None:
        return Row(name, address, (*begun, None, None, None, None, None))
    at_ns, rest = end
    if isinstance(rest, str):
        return Row(name, address, (*begun, None, None, rest, None, None))
    moments = [at_ns + round(1e9 * _at(rest.remaining, level)) for level in (0.5, *BAND)]
    step = None if rest.next_step is None else _at(rest.next_step, 0.5)
    return Row(name, address, (*begun, rest.steps_done / rest.total_steps, step, *moments))


def _at(quantiles: Sequence[Quantile], level: float) -> float:
    return min(quantiles, key=lambda quantile: abs(quantile.level - level)).seconds
