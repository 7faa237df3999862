"""The list of runs is served by indexes: whatever it is filtered by, nothing is sorted and no table is read whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text

from crosswind.data.catalog.catalog import Catalog, Session
from crosswind.data.catalog.runs import ANY_RUN, RunFilter
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import Run, RunState

MANY = 400
FILTERS = {
    "none": ANY_RUN,
    "workload": RunFilter(workload="w1"),
    "system": RunFilter(system="s1"),
    "state": RunFilter(state=RunState.FAILED),
    "job": RunFilter(job_id="7"),
    "workload and system": RunFilter(workload="w1", system="s1"),
    "workload and state": RunFilter(workload="w1", state=RunState.FAILED),
    "user": RunFilter(user="u1"),
    "account": RunFilter(account="a1"),
    "node": RunFilter(node="n1"),
    "node and workload": RunFilter(workload="w1", node="n1"),
    "node and time": RunFilter(node="n1", since_ns=20_000, until_ns=90_000),
    "time": RunFilter(since_ns=20_000, until_ns=90_000),
    "user and time": RunFilter(user="u1", since_ns=20_000),
}
Statement = tuple[str, Any]


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """Runs of five workloads on two systems, every tenth without a start."""
    with catalog.write() as session:
        session.runs.put_all(made_up(number) for number in range(MANY))
    return catalog


def made_up(number: int) -> Run:
    state = RunState.FAILED if number % 7 == 0 else RunState.COMPLETED
    began = None if number % 10 == 0 else 1000 * (number // 3)
    named = (f"r{number:04}", f"w{number % 5}", f"s{number % 2}", state)
    nodes = (f"n{number % 8}", f"n{number % 8 + 1}")
    return Run(*named, job_id=str(number // 4), nodes=nodes, started_ns=began, ended_ns=(began or 0) + 9)


@contextmanager
def statements(engine: Engine) -> Iterator[list[Statement]]:
    seen: list[Statement] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        seen.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


def plan_of(catalog: Catalog, ask: Callable[[Session], object]) -> str:
    """The database's plan of the one query that is asked, in lower case."""
    [plan] = plans_of(catalog, ask)
    return plan


def plans_of(catalog: Catalog, ask: Callable[[Session], object]) -> list[str]:
    engine = catalog._engine
    with statements(engine) as seen, catalog.read() as session:
        ask(session)
    with engine.connect() as connection:
        return [_explained(connection, *one) for one in seen if one[0].lower().startswith("select")]


def _explained(connection: Connection, statement: str, parameters: Any) -> str:
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"explain query plan {statement}", parameters)
        return "\n".join(str(row[3]) for row in rows).lower()
    for switch in ("enable_seqscan", "enable_bitmapscan"):  # what a small table would rather be read by
        connection.execute(text(f"set {switch} = off"))
    return "\n".join(row[0] for row in connection.exec_driver_sql(f"explain {statement}", parameters)).lower()


def assert_served(plan: str) -> None:
    assert "index" in plan, plan
    for costly in ("temp b-tree", "sort", "seq scan"):
        assert costly not in plan, plan
    if "search" in plan or "scan" in plan:  # SQLite's words
        assert "scan runs using index ix_runs_listed_ns_run_id" in plan or "scan runs" not in plan, plan


def test_no_part_of_the_list_is_sorted_in_either_order(filled: Catalog) -> None:
    for wanted, after in product(FILTERS.values(), (None, (60_000, "r0200"), (None, "r0200"))):
        for part in (Part(5, after=after), Part(5, after=after, descending=True)):
            assert_served(plan_of(filled, partial(_part, wanted, part)))


def _part(wanted: RunFilter, part: Part, session: Session) -> list[Run]:
    return session.runs.part(wanted, part)


def test_studies_are_listed_by_an_index(filled: Catalog) -> None:
    for by, after in (("created_ns", (7, "s")), ("name", ("n", "s"))):
        for part in (Part(5, by), Part(5, by, descending=True, after=after)):
            plan = plan_of(filled, lambda session, part=part: session.studies.part(part))  # type: ignore[misc]
            assert "index" in plan
            assert "temp b-tree" not in plan, plan


def test_a_cursor_leads_to_its_place_in_the_index(filled: Catalog) -> None:
    plan = plan_of(filled, lambda session: session.runs.find(before=(60_000, "r0200"), limit=5))
    assert "listed_ns" in plan.split("index", 1)[1], plan
    assert "scan runs" not in plan  # SQLite's word for a walk from the beginning


def test_the_end_of_an_id_is_a_range_of_an_index(filled: Catalog) -> None:
    plan = plan_of(filled, lambda session: session.runs.find(RunFilter(id_end="0123"), limit=5))
    assert "ix_runs_reversed_id" in plan


def test_peers_are_read_from_the_index_of_their_cohort_on_either_side(filled: Catalog) -> None:
    with filled.read() as session:
        run = session.runs.get("r0201")
    for plan in plans_of(filled, lambda session: session.runs.near(run, limit=5)):
        assert "ix_runs_cohort_listed_ns_run_id" in plan
        assert_served(plan)


def test_peers_are_those_that_began_nearest_on_both_sides(filled: Catalog) -> None:
    with filled.read() as session:
        run = session.runs.get("r0201")
        near = session.runs.some(session.runs.near(run, limit=20))
    assert len(near) == 20
    assert {(peer.workload, peer.system) for peer in near} == {("w1", "s1")}
    assert "r0201" not in {peer.run_id for peer in near}
    farthest = max(abs((peer.started_ns or 0) - 67_000) for peer in near)
    with filled.read() as session:
        everyone = session.runs.some(session.runs.near(run, limit=MANY))
    assert sorted(abs((peer.started_ns or 0) - 67_000) for peer in everyone)[19] == farthest


def test_parts_of_a_filtered_list_join_without_gap_or_repeat(filled: Catalog) -> None:
    for name, wanted in FILTERS.items():
        seen: list[Run] = []
        with filled.read() as session:
            whole = session.runs.find(wanted, limit=MANY)
            while part := session.runs.find(wanted, before=place(seen), limit=7):
                seen += part
        assert seen == whole, name
        assert whole == sorted(whole, key=lambda run: (run.started_ns or 0, run.run_id), reverse=True), name


def place(seen: list[Run]) -> tuple[int, str] | None:
    return (seen[-1].started_ns or 0, seen[-1].run_id) if seen else None


def test_ids_end_as_they_are_written(filled: Catalog) -> None:
    for end in ("7", "07", "%", "_", "R0007", "\\"):
        with filled.read() as session:
            ending = {run.run_id for run in session.runs.find(RunFilter(id_end=end), limit=MANY)}
        assert ending == {f"r{number:04}" for number in range(MANY) if f"r{number:04}".endswith(end)}, end


def test_the_list_of_a_node_follows_its_runs(catalog: Catalog) -> None:
    def on(node: str) -> list[str]:
        with catalog.read() as session:
            return [run.run_id for run in session.runs.find(RunFilter(node=node), limit=9)]

    first = Run("a", "w", "lab", RunState.COMPLETED, nodes=("n1", "n2"), started_ns=5)
    with catalog.write() as session:
        session.runs.merge(first)
        session.runs.merge(Run("b", "w", "lab", RunState.COMPLETED, nodes=("n1",), started_ns=3))
    assert (on("n1"), on("n2")) == (["a", "b"], ["a"])
    with catalog.write() as session:
        session.runs.merge(replace(first, started_ns=1))
    assert on("n1") == ["b", "a"], "it began earlier than its first record says"
    with catalog.write() as session:
        session.runs.put_all([replace(first, nodes=("n3", "n3"))])
    assert (on("n1"), on("n2"), on("n3")) == (["b"], [], ["a"])
    with catalog.write() as session:
        session.runs.remove("b")
        assert session.runs.count(RunFilter(node="n1")) == 0
