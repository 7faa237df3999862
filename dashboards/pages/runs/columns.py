"""The columns of the list of runs, and which of them are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.dashboards.pages.page import PageQuery
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run

SHORTEST = 6  # characters of a short id


@dataclass(frozen=True)
class Column:
    """One column; `sort` is the order by it, with a minus where the largest is wanted first, empty: none."""

    name: str
    label: str
    sort: str = ""
    is_number: bool = False


COLUMNS = (
    Column("verdict", "Verdict", "-verdict"),
    Column("run", "Run", "workload"),
    Column("system", "System"),
    Column("configuration", "Configuration"),
    Column("job", "Job"),
    Column("user", "User"),
    Column("nodes", "Nodes"),
    Column("ranks", "Ranks", is_number=True),
    Column("started", "Started", "-started"),
    Column("seconds", "Run time", "-seconds", is_number=True),
    Column("p50", "Step P50", "-p50", is_number=True),
    Column("cov", "CoV", "-cov", is_number=True),
    Column("excess", "Excess [90 %]", "-excess", is_number=True),
    Column("cause", "Cause, certainty", "cause"),
    Column("injected", "Injected"),
)
NAMES = tuple(column.name for column in COLUMNS)
ALWAYS = ("run",)
AT_FIRST = frozenset(NAMES) - {"system", "p50", "cov"}  # as wide as 1280 pixels


def chosen_columns(query: PageQuery) -> tuple[str, ...]:
    """Return the names of the columns that are asked for. Raises: InvalidInputError."""
    chosen = query.several("columns")
    for name in chosen:
        if name not in NAMES:
            raise InvalidInputError(f"query parameter columns={name[:60]!r}: expected some of {', '.join(NAMES)}")
    return chosen


def shown_columns(chosen: Sequence[str], sort: str, runs: Sequence[tuple[Run, str | None]]) -> tuple[Column, ...]:
    """Return the columns to show, and always that of the order; by default none in which no run has a value.

    runs: those shown, each with its injected disturbance.
    """
    names = frozenset(chosen) or AT_FIRST - _empty(runs)
    order = sort.removeprefix("-")
    return tuple(
        column
        for column in COLUMNS
        if column.name in names or column.name in ALWAYS or column.sort.removeprefix("-") == order
    )


def _empty(runs: Sequence[tuple[Run, str | None]]) -> frozenset[str]:
    values = [
        {"job": run.job_id, "user": run.user, "nodes": run.nodes, "ranks": run.world_size, "injected": injected}
        for run, injected in runs
    ]
    return frozenset(name for name in ("job", "user", "nodes", "ranks", "injected") if not any(v[name] for v in values))


def short_ids(run_ids: Sequence[str]) -> Mapping[str, str]:
    """Return by id its last characters, as many as tell these runs apart."""
    length = SHORTEST
    while len({run_id[-length:] for run_id in run_ids}) < len(set(run_ids)):
        length += 1
    return {run_id: run_id[-length:] for run_id in run_ids}
