"""The steps of one run, summed up in DuckDB: of millions of rows a page holds some thousand numbers."""

from dataclasses import dataclass

import duckdb
import pandas as pd

from crosswind.data.lake.steps_summary import FIRST_STEP, LAST_STEP, RANKS_MAX, Window, window_of
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import PHASES
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store

MOST_CELLS, MOST_RANKS = 6000, 128  # of the heat map; a page is to have 30 KB
MOST_EDGES = 100
_PHASES = ", ".join(f"{phase}_seconds" for phase in PHASES)
_ROWS = f"""
create temp table steps as select step, rank, ts_ns, duration_seconds, {_PHASES}
from {{files}} where run_id = $run and step between $first and $last and rank is not null
"""  # noqa: S608 - the files of the lake
_PER_STEP = f"""
create temp table per_step as select step, min(ts_ns) as began_ns, max(duration_seconds) * 1e-9 as seconds,
    arg_min(rank, comm_seconds::hugeint * {RANKS_MAX} + rank) as last_rank, min(comm_seconds) as least,
    count(comm_seconds) as waits, sum(comm_seconds) as waited
from steps group by step
"""  # noqa: S608 - constants
_SLOWEST = "select step, began_ns, seconds from per_step order by step"
_AVERAGES = ", ".join(f"avg({phase}_seconds) * 1e-9 as {phase}_seconds" for phase in PHASES)
_RANKS = f"""
with of_ranks as (select rank, {_AVERAGES}
    from steps where step >= $warm_up group by rank),
arrived as (select last_rank as rank from per_step where step >= $warm_up
    and waits = (select count(*) from of_ranks where comm_seconds is not null)),
last as (select rank, count(*) / (select count(*) from arrived) as last_ratio from arrived group by rank)
select of_ranks.*, case when exists (select 1 from arrived) then coalesce(last_ratio, 0) end as last_ratio
from of_ranks left join last using (rank) order by rank
"""  # noqa: S608 - constants
_CELLS = """
select rank, (step - $start) // $width as cell, max(comm_seconds) * 1e-9 as wait_seconds
from steps where step >= $warm_up and list_contains($ranks, rank) and comm_seconds is not null group by rank, cell
"""
_MEANS = """
select (step - $start) // $width as cell, sum(waited) / sum(waits) * 1e-9 as wait_seconds
from per_step where step >= $warm_up group by cell order by cell
"""
_EDGES = f"""
with arrived as (select step, last_rank as culprit, least from per_step where step >= $warm_up
    and waits = (select count(distinct rank) from steps where step >= $warm_up)),
edges as (select culprit, rank as victim, sum(comm_seconds - least) * 1e-9 as seconds,
    count(*) filter (comm_seconds > least) as steps from steps join arrived using (step) group by all)
select *, sum(seconds) over () as lost_seconds, (select count(*) from arrived) as of_steps
from edges where seconds > 0 order by seconds desc, culprit, victim limit {MOST_EDGES}
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class RecordedSteps:
    """Steps of a run, times in seconds.

    `slowest` has a row a step: step, began_ns, and seconds of the slowest rank. After warm-up: `ranks` has a row a
    rank, with rank, last_ratio (share of steps in which it arrived last; missing without a step that all recorded)
    and the mean `<phase>_seconds` a step; `cells` the longest wait by rank and cell, each of `steps_a_cell` steps from
    `first_step` on; `means` the mean wait of all ranks by cell. Where these are all steps, `edges` has who waited for
    whom: culprit, victim, seconds, steps, the largest first, with the sum of all pairs, lost_seconds, over of_steps.
    """

    slowest: pd.DataFrame
    ranks: pd.DataFrame
    cells: pd.DataFrame
    means: pd.DataFrame
    edges: pd.DataFrame
    first_step: int
    steps_a_cell: int

    @property
    def compared(self) -> pd.DataFrame:
        """The rows of `slowest` after warm-up."""
        return self.slowest[self.slowest["step"] >= WARM_UP_STEPS]


def recorded_steps(store: Store, run: Run, first: int | None = None, last: int | None = None) -> RecordedSteps:
    """Return the steps of a run that may be seen, all or from one to another. Raises: MalformedError."""
    limits = (FIRST_STEP if first is None else first, LAST_STEP if last is None else last)
    window = window_of(run, *limits)

    def ask(connection: duckdb.DuckDBPyConnection) -> RecordedSteps:
        files = store.lake.parts("step", window.within, [run.run_id])
        source = store.lake.source("step", files) or store.lake.files("step")
        connection.execute(_ROWS.format(files=source), _wanted(run, window))
        return _summed_up(connection, is_whole=first is last is None)

    return store.lake.answer(ask) if "step" in store.lake.sets() else _NOTHING


def _wanted(run: Run, window: Window) -> dict[str, object]:
    return {"run": run.run_id, "first": window.first, "last": window.last}


def _summed_up(connection: duckdb.DuckDBPyConnection, *, is_whole: bool) -> RecordedSteps:
    connection.execute(_PER_STEP)
    slowest = connection.execute(_SLOWEST).df()
    ranks = connection.execute(_RANKS, {"warm_up": WARM_UP_STEPS}).df()
    compared = slowest["step"][slowest["step"] >= WARM_UP_STEPS]
    if compared.empty:
        return RecordedSteps(slowest, ranks, _NO_CELLS, _NO_CELLS, _NO_EDGES, 0, 1)
    shown = sorted(ranks.dropna(subset="comm_seconds").nsmallest(MOST_RANKS, "comm_seconds")["rank"].astype(int))
    start, extent = int(compared.iloc[0]), int(compared.iloc[-1] - compared.iloc[0]) + 1
    width = -(-extent // max(1, MOST_CELLS // max(1, len(shown))))
    placed = {"start": start, "width": width, "warm_up": WARM_UP_STEPS}
    cells = connection.execute(_CELLS, {**placed, "ranks": shown}).df()
    means = connection.execute(_MEANS, placed).df()
    edges = connection.execute(_EDGES, {"warm_up": WARM_UP_STEPS}).df() if is_whole else _NO_EDGES
    return RecordedSteps(slowest, ranks, cells, means, edges, start, width)


_NO_CELLS = pd.DataFrame({"rank": [], "cell": [], "wait_seconds": []})
_NO_EDGES = pd.DataFrame({name: [] for name in ("culprit", "victim", "seconds", "steps", "lost_seconds", "of_steps")})
_NOTHING = RecordedSteps(
    pd.DataFrame({"step": [], "began_ns": [], "seconds": []}),
    pd.DataFrame({name: [] for name in ("rank", "last_ratio", *(f"{phase}_seconds" for phase in PHASES))}),
    *(_NO_CELLS, _NO_CELLS, _NO_EDGES, 0, 1),
)
