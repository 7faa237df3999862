"""A run's steps in one look: per step the slowest and the median rank, the phases, and who arrived last.

Compaction keeps a summary of each large run's compacted steps, one row a step, `rollup=step/run-….parquet`,
which names the files that it covers. What is read of it is exact: steps with rows in any file that it does not cover,
as those of the last minutes, are summed up from their rows. A damaged summary counts as none.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.lake.damage import DAMAGED, passing_over
from crosswind.data.lake.lake import Lake, arrow_schema, converted, sql_files
from crosswind.data.lake.parts import ALWAYS, DAY_NS, Span, compacted_span, days, held, live_in
from crosswind.data.lake.publish import hidden_name, land, publish
from crosswind.data.lake.rollups import rollup_place
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import PHASES, STEP

if TYPE_CHECKING:  # heavy, and needed by the frames alone
    import pandas as pd

POINTS = 2000
ROWS_READ_AT_ONCE = 65_536
FILES_AT_ONCE = 4  # of up to a million rows
MANY_ROWS = 10_000  # of a run in one file; fewer are read as quickly as a summary, of which there would be one a run
SUMMARISED = ".summarised"  # its time is that of the last look: compacted files that are older are covered
FIRST_STEP, LAST_STEP = 0, 2**63 - 1
RANKS_MAX = 2**32
_ROWS = "from {files} where run_id = $run and step between $first and $last and rank is not null"
_PER_STEP = """
select step, min(ts_ns) as began_ns, max(ts_ns) as last_began_ns, count(*) as ranks,
    max(duration_seconds) as slowest_ns, min(duration_seconds) as fastest_ns,
    median(duration_seconds)::bigint as median_ns,
    arg_max(rank, duration_seconds::hugeint * {ranks_max} - rank) as slowest_rank,
    case when count(comm_seconds) > 1 then arg_min(rank, comm_seconds::hugeint * {ranks_max} + rank) end as last_rank,
    max(comm_seconds) - min(comm_seconds) as spread_ns, {means}
{rows} {only} group by step
"""
_COVERED = "from {summary} where step between $first and $last order by step"
_ANSWER = """
with again as ({again}), fresh as ({fresh})
select * from {summary} where step between $first and $last and step not in (from again)
union all by name select * from fresh order by step
"""
_SECONDS = """
select step, began_ns, ranks, slowest_ns * 1e-9 as slowest_seconds, fastest_ns * 1e-9 as fastest_seconds,
    median_ns * 1e-9 as median_seconds, slowest_rank, last_rank, spread_ns * 1e-9 as spread_seconds, {phases}
from steps order by step
"""
_RIBBON = """
with placed as (select *, (step - (select min(step) from steps)) // $width as block from steps),
last_ranks as (select block, last_rank, count(*) as times from placed where last_rank is not null group by all),
often as (select block, arg_max(last_rank, times::hugeint * {ranks_max} - last_rank) as rank from last_ranks group by 1)
select min(step) as first_step, max(step) as last_step, min(began_ns) as began_ns, count(*) as steps,
    min(slowest_ns) * 1e-9 as fastest_seconds, median(slowest_ns) * 1e-9 as median_seconds,
    max(slowest_ns) * 1e-9 as slowest_seconds, arg_max(step, {slowest}) as slowest_step,
    arg_max(slowest_rank, {slowest}) as slowest_rank, any_value(often.rank) as last_rank, {phases}
from placed left join often using (block) group by block order by first_step
"""
_SLOWEST = f"slowest_ns::hugeint * {LAST_STEP} - step"  # of steps that took as long the first


@dataclass(frozen=True)
class Window:
    """The steps that are wanted, both ends included; `within` is when they were taken, if that is known."""

    first: int = FIRST_STEP
    last: int = LAST_STEP
    within: Span = ALWAYS


EVERY_STEP = Window()
CLOCKS_NS = DAY_NS  # by which the clocks of a run's nodes, and the catalog's, may differ


def window_of(run: Run, first: int = FIRST_STEP, last: int = LAST_STEP) -> Window:
    """Some steps of a run; files of other times are not opened."""
    begin_ns = ALWAYS[0] if run.started_ns is None else run.started_ns - CLOCKS_NS
    return Window(first, last, (begin_ns, ALWAYS[1] if run.ended_ns is None else run.ended_ns + CLOCKS_NS))


def time_of(runs: Iterable[Run]) -> Span:
    """Return when the steps of these runs were taken: files of other times need not be opened."""
    spans = [window_of(run).within for run in runs]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else ALWAYS


def per_step(lake: Lake, run_id: str, window: Window = EVERY_STEP) -> "pd.DataFrame":
    """One row a step over its ranks, in order.

    Columns: step began_ns ranks slowest_seconds fastest_seconds median_seconds slowest_rank last_rank spread_seconds
    and one `<phase>_seconds` a phase, the mean over ranks. `last_rank` arrived last at the step's last collective: it
    waited least; `spread_seconds` is how much longer another waited. Null where nothing is recorded.
    Raises: MalformedError.
    """
    return lake.answer(lambda connection: _query(connection, _steps(connection, lake, run_id, window), _seconds()))


def ribbon(lake: Lake, run_id: str, window: Window = EVERY_STEP, *, points: int = POINTS) -> "pd.DataFrame":
    """At most `points` rows, each of equally many steps in order: what the slowest ranks' durations were.

    Columns: first_step last_step began_ns steps fastest_seconds median_seconds slowest_seconds slowest_step
    slowest_rank last_rank (of most steps) and one `<phase>_seconds` a phase, a mean. Raises: MalformedError.
    """
    phases = ", ".join(f"avg({phase}_ns) * 1e-9 as {phase}_seconds" for phase in PHASES)

    def ask(connection: duckdb.DuckDBPyConnection) -> "pd.DataFrame":
        steps = _steps(connection, lake, run_id, window)
        numbers = steps["step"]
        extent = numbers[-1].as_py() - numbers[0].as_py() + 1 if len(steps) else 1
        sql = _RIBBON.format(phases=phases, slowest=_SLOWEST, ranks_max=RANKS_MAX)
        return _query(connection, steps, sql, {"width": -(-extent // points)})

    return lake.answer(ask)


def rank_steps(
    lake: Lake, run_id: str, ranks: Sequence[int] = (), window: Window = EVERY_STEP, *, columns: Sequence[str] = ()
) -> "pd.DataFrame":
    """Rows of some ranks' steps, or of all ranks', in order of rank and step; times in seconds; all columns or some.

    Raises: MalformedError.
    """
    wanted = ", ".join(converted(column) for column in STEP.columns if not columns or column.name in columns)
    of_ranks = f" and rank in ({', '.join(str(int(rank)) for rank in ranks)})" if ranks else ""

    def ask(connection: duckdb.DuckDBPyConnection) -> "pd.DataFrame":
        files = _source(connection, lake, _with_rows(connection, lake, run_id, window))
        rows = _ROWS.format(files=files)
        sql = f"select {wanted} {rows}{of_ranks} order by rank, step"
        frame: pd.DataFrame = connection.execute(sql, _parameters(run_id, window)).df()
        return frame

    return lake.answer(ask)


def summarise(lake: Lake, problems: list[str]) -> int:
    """Brings the summaries of runs up to what was compacted since the last time; how many were written.

    For the one process that compacts. Damage is passed over and reported. Raises: OSError.
    """
    damaged: list[str] = []
    files = list(_compacted_files(lake, damaged))
    fresh = _written_since(lake.root / SUMMARISED, files)
    if not fresh:
        problems += damaged
        return 0
    begun = hidden_name(lake.root, lake.root / SUMMARISED)
    begun.touch()
    written = 0
    for run_id, of_run in sorted(_by_run(files, fresh, damaged).items()):
        with passing_over(damaged, _place(lake, run_id)):
            written += _summarise(lake, run_id, of_run)
    if damaged:  # all of it is looked at again the next time
        begun.unlink()
    else:
        land([(begun, lake.root / SUMMARISED)])
    problems += damaged
    return written


def _compacted_files(lake: Lake, problems: list[str]) -> Iterator[Path]:
    for day in days(lake.root / f"set={STEP.name}"):
        with passing_over(problems, day):
            yield from [path for path in live_in(day) if compacted_span(path.name)]


def _written_since(mark: Path, files: Iterable[Path]) -> list[Path]:
    try:
        since_ns = mark.stat().st_mtime_ns
    except FileNotFoundError:
        return list(files)
    return [path for path in files if path.stat().st_mtime_ns >= since_ns]


def _by_run(files: Sequence[Path], fresh: Iterable[Path], problems: list[str]) -> dict[str, list[Path]]:
    """All files of each run of which a fresh one holds many rows."""
    wanted: set[str] = set()
    for path in fresh:
        with passing_over(problems, path):
            wanted |= _large_runs(path)
    return {run_id: [path for path in files if held(path).may_hold(run_id)] for run_id in wanted}


def _large_runs(path: Path) -> set[str]:
    of_rows = pq.ParquetFile(path, read_dictionary=["run_id"]).read(["run_id"], use_threads=False)
    counts = of_rows.unify_dictionaries().group_by("run_id", use_threads=False).aggregate([([], "count_all")])
    large = counts.filter(pc.greater_equal(counts["count_all"], MANY_ROWS))
    return {run_id for run_id in large["run_id"].to_pylist() if run_id is not None}


def _summarise(lake: Lake, run_id: str, files: Sequence[Path]) -> bool:
    """Return whether there was anything to write. Some files at a time: a long run's rows do not fit into memory."""
    covers = _covers(_place(lake, run_id))
    if covers.issuperset(map(_within_lake, files)):
        return False
    covered = [path for path in files if _is_covered(path, covers)]
    fresh = [path for path in files if path not in covered]
    for first in range(0, max(len(fresh), 1), FILES_AT_ONCE):
        covered += fresh[first : first + FILES_AT_ONCE]
        _write(lake, run_id, covered)
    return True


def _write(lake: Lake, run_id: str, files: Sequence[Path]) -> None:
    """Brings the summary up to these files, of which it knows most."""
    place = _place(lake, run_id)
    summary = lake.answer(lambda connection: _combined(connection, lake, (run_id, EVERY_STEP), files))
    covers = json.dumps(sorted(map(_within_lake, files)))
    hidden = hidden_name(lake.root, place)
    integers = [field.name for field in summary.schema if pa.types.is_integer(field.type)]
    pq.write_table(
        summary.replace_schema_metadata({"crosswind.run": run_id, "crosswind.covers": covers}),
        hidden,
        compression="zstd",
        use_dictionary=False,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        row_group_size=ROWS_READ_AT_ONCE,
    )
    publish(hidden, place)


def _steps(connection: duckdb.DuckDBPyConnection, lake: Lake, run_id: str, window: Window) -> pa.Table:
    """The summary's columns of every step in the window, exact."""
    files = lake.parts("step", window.within, [run_id])
    return _combined(connection, lake, (run_id, window), files)


def _combined(
    connection: duckdb.DuckDBPyConnection, lake: Lake, of: tuple[str, Window], files: Sequence[Path]
) -> pa.Table:
    """The steps as the summary has them, and from their rows where a file holds some that it does not cover."""
    run_id, window = of
    place, parameters = _place(lake, run_id), _parameters(run_id, window)
    covers, summary = _covers(place), sql_files([place])
    fresh = [path for path in files if not _is_covered(path, covers)]
    if covers and not fresh:
        return _table(connection, _COVERED.format(summary=summary), parameters)
    rows = _ROWS.format(files=_source(connection, lake, files))
    if not covers:
        return _table(connection, _per_step_sql(rows) + " order by step", parameters)
    again = f"select distinct step {_ROWS.format(files=_source(connection, lake, fresh))}"
    [(first, last)] = connection.execute(f"select min(step), max(step) from ({again})", parameters).fetchall()  # noqa: S608
    if first is None:
        return _table(connection, _COVERED.format(summary=summary), parameters)
    fresh_steps = _per_step_sql(rows, f"and step in ({again}) and step between {first} and {last}")
    return _table(connection, _ANSWER.format(again=again, fresh=fresh_steps, summary=summary), parameters)


def _table(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]) -> pa.Table:
    given = {name: value for name, value in parameters.items() if f"${name}" in sql}
    return connection.sql(sql, params=given).to_arrow_table()


def _with_rows(connection: duckdb.DuckDBPyConnection, lake: Lake, run_id: str, window: Window) -> list[Path]:
    """The files that may hold rows of these steps; for those that it covers, the summary says when the steps were."""
    files, place = lake.parts("step", window.within, [run_id]), _place(lake, run_id)
    covers = _covers(place)
    if not covers or (window.first, window.last) == (FIRST_STEP, LAST_STEP):
        return files
    sql = f"select min(began_ns), max(last_began_ns) from ({_COVERED.format(summary=sql_files([place]))})"  # noqa: S608
    [(begin, end)] = connection.execute(sql, {"first": window.first, "last": window.last}).fetchall()
    return [
        path for path in files if not _is_covered(path, covers) or (begin is not None and _overlaps(path, begin, end))
    ]


def _overlaps(path: Path, begin_ns: int, end_ns: int) -> bool:
    first, last = compacted_span(path.name) or ALWAYS
    return first <= end_ns and last >= begin_ns


def _per_step_sql(rows: str, only: str = "") -> str:
    means = ", ".join(f"avg({phase}_seconds)::bigint as {phase}_ns" for phase in PHASES)
    return _PER_STEP.format(rows=rows, only=only, means=means, ranks_max=RANKS_MAX)


def _source(connection: duckdb.DuckDBPyConnection, lake: Lake, files: Sequence[Path]) -> str:
    source = lake.source("step", files)
    if not source:
        connection.register("no_steps", arrow_schema(STEP).empty_table())
    return source or "no_steps"


def _query(
    connection: duckdb.DuckDBPyConnection, steps: pa.Table, sql: str, parameters: Mapping[str, object] | None = None
) -> "pd.DataFrame":
    connection.register("steps", steps)
    frame: pd.DataFrame = connection.execute(sql, parameters or {}).df()
    return frame


def _seconds() -> str:
    return _SECONDS.format(phases=", ".join(f"{phase}_ns * 1e-9 as {phase}_seconds" for phase in PHASES))


def _parameters(run_id: str, window: Window) -> dict[str, object]:
    return {"run": run_id, "first": window.first, "last": window.last}


def _place(lake: Lake, run_id: str) -> Path:
    return rollup_place(lake, "step", run_id, "parquet")


def _within_lake(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _is_covered(path: Path, covers: Collection[str]) -> bool:
    """Return whether the summary knows the file, or all that it was made of."""
    if _within_lake(path) in covers:
        return True
    if not covers or not compacted_span(path.name):
        return False
    return held(path).is_of_older and all(_within_lake(path.with_name(name)) in covers for name in held(path).older)


def _covers(place: Path) -> frozenset[str]:
    try:
        return _covers_at(place, place.stat().st_mtime_ns)
    except DAMAGED:  # or not there
        return frozenset()


@lru_cache(maxsize=200)
def _covers_at(place: Path, _: int) -> frozenset[str]:
    metadata = pq.read_schema(place).metadata or {}
    return frozenset(json.loads(metadata.get(b"crosswind.covers", b"[]")))
