"""Plans of statements: over what they name and over everything the answer is the same."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import pytest

from crosswind.data.sql.plan import Condition, Planner, Wanted

TABLES: Mapping[str, Mapping[str, str]] = {
    "runs": {"run_id": "string", "workload": "string", "started_ns": "int64", "run_seconds": "float64"},
    "step": {"run_id": "string", "rank": "int64", "step": "int64", "duration_seconds": "float64"},
}
PARSER = duckdb.connect()


def plan(query: str, parameters: Mapping[str, object] | None = None, limit: int = 11) -> dict[str, Wanted]:
    [(text,)] = PARSER.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
    tree = json.loads(text)
    assert not tree["error"], tree
    return {one.table: one for one in Planner(TABLES, parameters or {}, limit).plan(tree["statements"][0])}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select count(*) from step", Wanted("step", ())),
        ("select rank from step", Wanted("step", ("rank",), limit=11)),
        ("select * from step limit 5 offset 2", Wanted("step", None, limit=7)),
        ("from step offset 2", Wanted("step", None, limit=13)),
        ("describe step", Wanted("step", None, limit=0)),
        ("summarize step", Wanted("step", None)),
        ("select s from step s", Wanted("step", None, limit=11)),
        ("select step.* from step", Wanted("step", None, limit=11)),
        ("select #1 from step", Wanted("step", None)),
        ("from step s(a, b) where a = 1", Wanted("step", None)),
        ("select rank from step where rank = 1", Wanted("step", ("rank",), (Condition("rank", "=", (1,)),), limit=11)),
        ("select rank from step where rank = 1.5", Wanted("step", ("rank",))),
        ("select rank from step where run_id > 'a'", Wanted("step", ("run_id", "rank"))),
        ("select distinct rank from step limit 2", Wanted("step", ("rank",))),
        ("select rank from step order by rank limit 2", Wanted("step", ("rank",))),
        ("select max(rank) from step limit 2", Wanted("step", ("rank",))),
        ("select rank from step where rank = 1 or step = 2", Wanted("step", ("rank", "step"))),
        ("with step as (select * from step) from step where rank = 1", Wanted("step", None)),
        ("select * from step where rank = 1 union all from step", Wanted("step", None)),
        ("from (pivot step on rank in (0, 1) using max(step))", Wanted("step", None)),
        ("select * from step tablesample 5 rows where rank = 1", Wanted("step", None)),
        (
            "select * from step where rank = 1 using sample 5 rows",
            Wanted("step", None, (Condition("rank", "=", (1,)),)),
        ),
    ],
)
def test_of_a_table_those_rows_and_columns_are_read_that_can_matter(query: str, expected: Wanted) -> None:
    assert plan(query)["step"] == expected


def test_parameters_are_conditions() -> None:
    wanted = plan("select rank from step where run_id = $run and rank between 1 and $last", {"run": "r1", "last": 4})
    conditions = (Condition("run_id", "=", ("r1",)), Condition("rank", ">=", (1,)), Condition("rank", "<=", (4,)))
    assert wanted["step"].conditions == conditions


@pytest.mark.parametrize(
    "query",
    [
        "select rank from step join runs using (run_id) where workload = 'a'",
        "select rank from step s join runs r on s.run_id = r.run_id and r.workload = 'a'",
        "select rank from step s, runs r where r.run_id = s.run_id and workload = 'a'",
        "select rank from step where run_id in (select run_id from runs where workload = 'a' limit 3)",
    ],
)
def test_rows_of_runs_are_bound_by_the_runs_that_they_are_joined_with(query: str) -> None:
    assert plan(query)["step"].runs_of == ("runs",)


@pytest.mark.parametrize(
    "query",
    [
        "select rank from step left join runs using (run_id) where step = 1",
        "select rank from step where run_id not in (select run_id from runs)",
        "with runs as (select 'x' as run_id) select rank from step join runs using (run_id)",
        "select rank from step where run_id in (select run_id || 'x' from runs)",
    ],
)
def test_rows_of_other_runs_are_read_where_they_may_matter(query: str) -> None:
    assert plan(query)["step"].runs_of == ()


def test_a_table_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"table '/etc/passwd' is unknown, expected one of runs, step"):
        plan("select * from '/etc/passwd'")


SHOWN = (
    "*",
    "rank, step",
    "count(*) as n",
    "run_id, max(step) as m",
    "s.*",
    "sum(duration_seconds) as d, rank",
    "rank + 1 as rank",
)
SOURCES = (
    "step s",
    "step s join runs r using (run_id)",
    "step s left join runs r using (run_id)",
    "runs r right join step s on s.run_id = r.run_id",
    "step s full join runs r on s.run_id = r.run_id and r.started_ns > 1",
    "step s, runs r",
    "(select * from step where rank = 1) s",
    "step s semi join runs r using (run_id)",
    "step s anti join (select * from runs where started_ns = 2) r using (run_id)",
    "step s positional join runs r",
)
CONDITIONS = (
    *("s.rank = 1", "s.rank in (0, 2)", "s.step between 1 and 2", "2 > s.step", "s.duration_seconds >= 0.5"),
    *("s.run_id = 'a'", "s.run_id in ('a', 'c', null)", "not s.rank = 1", "s.rank = 1 or s.step = 0", "rank = 1"),
    "s.run_id in (select run_id from runs where workload = 'x')",
    "s.run_id not in (select run_id from runs where workload = 'x')",
    "exists (select 1 from runs where run_id = s.run_id and started_ns < 3)",
    "s.step = (select max(step) from step)",
)
ENDS = ("", "limit 3", "order by all limit 4", "limit 2 offset 1")


def random_query(chance: random.Random) -> str:
    shown = chance.choice(SHOWN)
    where = " and ".join(chance.sample(CONDITIONS, chance.randint(0, 3))) or "true"
    group = "group by all" if "(" in shown else ""
    return f"select {shown} from {chance.choice(SOURCES)} where {where} {group} {chance.choice(ENDS)}"


def filled(wanted: Mapping[str, Wanted] | None) -> duckdb.DuckDBPyConnection:
    """Return a database with all rows, or with those that are wanted and what cannot matter left out."""
    connection = duckdb.connect()
    connection.execute(
        "create table runs as select * from (values ('a', 'x', 1, 0.5), ('b', 'x', 2, 1.0), ('c', 'y', 3, null), "
        "('d', null, null, 2.0)) t(run_id, workload, started_ns, run_seconds)"
    )
    connection.execute(
        "create table step as select r.run_id, k.rank, s.step, (k.rank + s.step) * 0.25 as duration_seconds "
        "from (values ('a'), ('b'), ('c'), ('e'), (null)) r(run_id), range(3) k(rank), range(3) s(step)"
    )
    for name, one in sorted((wanted or {}).items()):  # runs before step
        where = ["true"]
        where += [f'"{c.column}" {c.operator} {c.values[0]!r}' for c in one.conditions if c.operator != "="]
        where += [f'"{c.column}" in ({", ".join(map(repr, c.values))})' for c in one.conditions if c.operator == "="]
        where += [f"run_id in (select run_id from {other})" for other in one.runs_of if name == "step"]
        columns = "*" if one.columns is None else ", ".join(one.columns) or "rank" if name == "step" else "*"
        limit = "" if one.limit is None else f"limit {one.limit}"
        connection.execute(
            f"create or replace table {name} as select {columns} from {name} where {' and '.join(where)} {limit}"
        )
    return connection


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[object] | str:
    try:
        return connection.execute(query).fetchall()
    except duckdb.Error as error:
        return type(error).__name__


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 12))])
def test_a_statement_over_what_is_needed_answers_as_over_everything(seed: int) -> None:
    chance = random.Random(seed)
    whole, cut = filled(None), 0
    for _ in range(60):
        query = random_query(chance)
        wanted = plan(query, limit=1000)
        cut += any(one.conditions or one.runs_of or one.limit not in (None, 1000) for one in wanted.values())
        expected, given = rows_of(whole, query), rows_of(filled(wanted), query)
        if isinstance(expected, str) or "limit" not in query or "order by" in query:
            assert same(given, expected), query
        else:  # which rows come first is not said
            assert len(given) == len(expected), query
            every = rows_of(whole, query[: query.rindex("limit")])
            assert all(row in every for row in given), query
    assert cut > 20  # else nothing was tried


def same(given: list[object] | str, expected: list[object] | str) -> bool:
    return sorted(map(repr, given)) == sorted(map(repr, expected))


def test_a_plan_that_leaves_out_a_row_that_matters_would_be_seen() -> None:
    query = "select count(*) from step where rank = 1"
    wrong = {"step": replace(plan(query)["step"], conditions=(Condition("rank", "=", (2,)),))}
    assert rows_of(filled(wrong), query) != rows_of(filled(None), query)
