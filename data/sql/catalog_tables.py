"""Tables of the catalog as statements see them: their columns, and the rows of each that a rule lets be seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, ColumnElement, Select, Table, Text, and_, cast, select

from crosswind.data.catalog import tables
from crosswind.data.catalog.seen import are_seen, is_seen, of_seen_runs
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.sql.plan import Condition

OF_SECOND = 1e-9
RUN_SECONDS = "run_seconds"
COMPARE: Mapping[str, Callable[[ColumnElement[Any], Any], ColumnElement[bool]]] = {
    "<": lambda column, value: column < value,
    ">": lambda column, value: column > value,
    "<=": lambda column, value: column <= value,
    ">=": lambda column, value: column >= value,
}


@dataclass(frozen=True)
class CatalogTable:
    """A table of the catalog, and the condition on its rows that a rule lets be seen."""

    shown: MetricSet
    table: Table
    is_seen: Callable[[RowRule], ColumnElement[bool]]

    def query(self, columns: Sequence[str], conditions: Sequence[Condition], rule: RowRule) -> Select[Any]:
        """Return the query for these columns of rows that meet the conditions and may be seen."""
        shown = [self._shown(name) for name in columns]
        where = [self._where(condition) for condition in conditions]
        return select(*shown).select_from(self.table).where(self.is_seen(rule), *where)

    def _column(self, name: str) -> ColumnElement[Any]:
        return _seconds(self.table) if name == RUN_SECONDS else self.table.c[name]

    def _shown(self, name: str) -> ColumnElement[Any]:
        """Return a column as it is shown; JSON as the text that is stored, which nothing takes apart."""
        column = self._column(name)
        return (cast(column, Text) if isinstance(column.type, JSON) else column).label(name)

    def _where(self, condition: Condition) -> ColumnElement[bool]:
        column = self._column(condition.column)
        if condition.operator == "=":
            return column.in_(condition.values)
        return and_(*(COMPARE[condition.operator](column, value) for value in condition.values))


def _text(name: str, description: str) -> Column:
    return Column(name, description, Kind.FACT, "string")


def _moment(name: str, description: str) -> Column:
    return Column(name, f"{description}, UTC since 1970", Kind.FACT, unit="ns")


def _count(name: str, description: str) -> Column:
    return Column(name, description, Kind.FACT, unit="1")


def _number(name: str, description: str, unit: str = "s") -> Column:
    return Column(name, description, dtype="float64", unit=unit)


def _seconds(table: Table) -> ColumnElement[Any]:
    return (table.c.ended_ns - table.c.started_ns) * OF_SECOND


RUNS = MetricSet(
    "runs",
    "One execution of one workload with one configuration.",
    (
        _text("run_id", "the run"),
        _text("workload", "what ran"),
        _text("system", "the cluster"),
        _text("state", "running, completed, failed, stopped or lost"),
        _count("world_size", "ranks"),
        _text("configuration", "parameters by name, JSON"),
        _text("job_id", "the scheduler's job that it ran in"),
        _text("nodes", "host names, a JSON list"),
        _moment("started_ns", "start"),
        _moment("ended_ns", "end"),
        _number(RUN_SECONDS, "from start to end"),
        Column("exit_code", "of its process", Kind.FACT),
        _text("command", "command line without secrets, a JSON list"),
        _text("software", "versions by name, JSON"),
        _text("tags", "texts by name, JSON"),
        _text("facts", "of the system and its software, JSON"),
        _text("user", "login name of whoever ran it"),
        _text("account", "who pays"),
        Column("shared", "everybody may see it", Kind.FACT, "bool"),
        _text("cohort", "the same for runs of one workload, configuration and scale on one system"),
    ),
)
RANKS = MetricSet(
    "ranks",
    "One process of a run.",
    (
        _text("run_id", "the run"),
        _count("rank", "its number, from 0"),
        _text("node", "host name"),
        Column("pid", "process id there", Kind.FACT),
        _moment("started_ns", "start"),
        _moment("ended_ns", "end"),
        Column("clock_offset_ns", "its clock against that of rank 0", unit="ns"),
    ),
)
VERDICTS = MetricSet(
    "verdicts",
    "The times of a run's steps after warm-up, and the verdict on it, as they were last computed.",
    (
        _text("run_id", "the run"),
        _count("steps", "its steps"),
        _number("step_p50_seconds", "median step"),
        _number("step_mean_seconds", "mean step"),
        _number("step_cov_ratio", "standard deviation of its steps over their mean", "1"),
        _text("verdict", "slow, usual, ... against its cohort"),
        _text("cause", "the largest one of its excess"),
        _number("measured_seconds", "what it took"),
        _number("expected_seconds", "what runs of its cohort take"),
        _number("excess_seconds", "the difference"),
        _number("excess_low_seconds", "low end of its 90 % interval"),
        _number("excess_high_seconds", "high end of its 90 % interval"),
    ),
)
STUDIES = MetricSet(
    "studies",
    "One search for a configuration.",
    (
        _text("study_id", "the study"),
        _text("name", "what its owner called it"),
        _text("objective", "the number to make smaller"),
        _text("unit", "of the objective"),
        _text("space", "its parameters, JSON"),
        _text("state", "running, paused or stopped"),
        _moment("created_ns", "when it was made"),
        _count("trials_max", "its budget"),
        _text("owner", "login name of whoever made it"),
        _text("account", "who pays"),
        Column("shared", "everybody may take part", Kind.FACT, "bool"),
    ),
)
TRIALS = MetricSet(
    "trials",
    "One configuration evaluated in a study.",
    (
        _text("trial_id", "the trial"),
        _text("study_id", "its study"),
        _text("configuration", "parameters by name, JSON"),
        _text("state", "waiting, leased, released, done, pruned, infeasible or failed"),
        Column("objective", "what was measured, in the study's unit; lower is better", dtype="float64"),
        _text("outcomes", "what else was measured, by name, JSON"),
        _text("owner", "who has or had it"),
        _text("job", "the job that it ran in"),
        _text("run_id", "the run that measured it"),
        _text("reason", "why it ended without a value"),
        _count("losses", "times its lease ran out"),
        Column("charged", "it counts against the budget", Kind.FACT, "bool"),
    ),
)
REPORTS = MetricSet(
    "reports",
    "Intermediate values of trials.",
    (
        _text("study_id", "the study"),
        _text("trial_id", "the trial"),
        _count("step", "when, as the trial counts"),
        Column("value", "lower is better", dtype="float64"),
    ),
)


def _is_of_seen_study(table: Table) -> Callable[[RowRule], ColumnElement[bool]]:
    seen = tables.studies.c.study_id
    return lambda rule: table.c.study_id.in_(select(seen).where(is_seen(rule, tables.studies)))


def _is_of_seen_run(table: Table) -> Callable[[RowRule], ColumnElement[bool]]:
    return lambda rule: of_seen_runs(rule, table.c.run_id)


def _is_rank(rule: RowRule) -> ColumnElement[bool]:
    return and_(tables.ranks.c.rank >= 0, of_seen_runs(rule, tables.ranks.c.run_id))


CATALOG_TABLES: Mapping[str, CatalogTable] = {
    one.shown.name: one
    for one in (
        CatalogTable(RUNS, tables.runs, are_seen),
        CatalogTable(RANKS, tables.ranks, _is_rank),
        CatalogTable(VERDICTS, tables.run_verdicts, _is_of_seen_run(tables.run_verdicts)),
        CatalogTable(STUDIES, tables.studies, lambda rule: is_seen(rule, tables.studies)),
        CatalogTable(TRIALS, tables.trials, _is_of_seen_study(tables.trials)),
        CatalogTable(REPORTS, tables.reports, _is_of_seen_study(tables.reports)),
    )
}
