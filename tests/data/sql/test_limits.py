"""Limits of statements: each ends with a reason, and the next one has a fresh process."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.sql.limits import LIMITS, MIB
from crosswind.data.sql.process import SqlProcess, SqlProcesses
from crosswind.data.sql.statement import SqlRows, Statement, run
from crosswind.data.sql.stop import Stop
from crosswind.data.store.store import Store

Ask = Callable[..., SqlRows]
FOREVER = "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t"
CROSSED = "select count(*) from range(10000000) a, range(10000000) b"
SHORT = replace(LIMITS, seconds=1.5)
GREEDY = (
    "select list(range) from range(100000000)",
    "select count(*) from (select distinct md5(range::varchar) from range(30000000))",
    "select * from range(50000000) order by random()",
)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("query", [FOREVER, pytest.param(CROSSED, marks=pytest.mark.thorough)])
def test_a_statement_ends_when_its_time_is_over(ask: Ask, query: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidInputError, match=r"query: it took longer than 1.5 s, and was stopped"):
        ask(query, limits=SHORT)
    assert time.monotonic() - began < 10  # the machine may be busy


@pytest.mark.parametrize(
    "query", [GREEDY[0], *(pytest.param(query, marks=pytest.mark.thorough) for query in GREEDY[1:])]
)
def test_a_statement_that_needs_too_much_memory_says_so(ask: Ask, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"needs more memory than one statement gets"):
        ask(query)
    assert ask("select 1 as one").table.to_pylist() == [{"one": 1}]


def test_a_result_has_at_most_so_many_bytes(ask: Ask) -> None:
    with pytest.raises(InvalidInputError, match=r"the result has more than 16 MiB"):
        ask("select repeat('x', 1000000) from range(100)")


def test_a_result_has_at_most_so_many_rows_and_says_that_there_are_more(ask: Ask) -> None:
    first = ask("from range(5000)", limit=4)
    assert (first.table.num_rows, first.is_complete) == (4, False)
    assert ask("from range(4)", limit=4).is_complete


def test_rows_of_a_large_table_are_refused_with_what_to_do(ask: Ask) -> None:
    few = replace(LIMITS, handed_bytes=20_000)
    with pytest.raises(
        InvalidInputError, match=r"rows of step .*all columns.* are more than .* compare run_id, node or ts_ns"
    ):
        ask("select * from step order by ts_ns", limits=few)
    assert ask("select * from step where run_id = 'ann-run1' order by ts_ns", limits=few).table.num_rows == 28
    joined = (
        "select count(*) as n from step join runs using (run_id) where workload = 'gpt' and runs.run_id = 'ann-run2'"
    )
    assert ask(joined, limits=few).table.to_pylist() == [{"n": 28}]
    assert ask("select * from step", limit=5, limits=few).table.num_rows == 5


@pytest.mark.parametrize("query", ["select " + "(" * 5000 + "1" + ")" * 5000, "select 1" + "+1" * 6000])
def test_a_statement_that_is_nested_too_deeply_is_refused(ask: Ask, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"query: .*(depth|nested)"):
        ask(query)


def test_a_statement_ends_with_whoever_waits_for_it(two: Store) -> None:
    stop, pids = Stop(), []

    class Watched(SqlProcesses):
        def take(self, stop: Stop) -> SqlProcess:
            process = super().take(stop)
            pids.append(process.pid)
            return process

    threading.Timer(1.0, stop.stop, ["nobody waits for it any more"]).start()
    with pytest.raises(InvalidInputError, match="nobody waits"):
        run(two, Statement(FOREVER), Watched(), stop)
    assert not is_alive(pids[0])


def test_after_a_crash_the_reason_is_said_and_the_next_statement_has_a_fresh_process(two: Store) -> None:
    processes, pids = SqlProcesses(keeps=True), []

    class Crashing(SqlProcesses):
        def take(self, stop: Stop) -> SqlProcess:
            process = super().take(stop)
            pids.append(process.pid)
            threading.Timer(0.8, os.kill, [process.pid, signal.SIGSEGV]).start()
            return process

    with pytest.raises(InvalidInputError, match=r"its process ended \(signal 11\) at a limit or by a fault"):
        run(two, Statement(FOREVER), Crashing(), Stop())
    answer = run(two, Statement("select count(*) as n from runs"), processes, Stop())
    assert answer.table.to_pylist() == [{"n": 52}]
    processes.close()


def test_a_process_runs_one_statement_and_the_next_one_is_kept_ready(two: Store) -> None:
    processes = SqlProcesses(keeps=True)
    run(two, Statement("select 1"), processes, Stop())
    kept = processes._next
    assert kept is not None
    assert kept.is_alive()
    run(two, Statement("select 1"), processes, Stop())
    assert not kept.is_alive()
    assert processes._next is not kept
    processes.close()
    assert processes._next is None


def test_a_process_takes_limits_on_itself(two: Store) -> None:
    stop, seen = Stop(), {}

    class Watched(SqlProcesses):
        def take(self, stop: Stop) -> SqlProcess:
            process = super().take(stop)

            def look() -> None:
                with open(f"/proc/{process.pid}/limits") as file:  # noqa: PTH123
                    seen.update({line[:25].strip(): line[26:46].strip() for line in file})
                stop.stop("seen")

            threading.Timer(1.2, look).start()
            return process

    with pytest.raises(InvalidInputError, match="seen"):
        run(two, Statement(FOREVER), Watched(), stop)
    assert seen["Max file size"] == "0"
    assert seen["Max core file size"] == "0"
    assert int(seen["Max open files"]) <= 64
    assert int(seen["Max address space"]) <= 1536 * MIB + LIMITS.memory_bytes + 2 * LIMITS.handed_bytes
    assert int(seen["Max cpu time"]) <= 65


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"query": "   "}, "query: expected 1 to 20000 characters"),
        ({"query": "x" * 20_001}, "query: expected 1 to 20000 characters of SQL, has 20001"),
        ({"query": "select 1", "limit": 0}, "limit 0: expected 1 to 10000 rows"),
        ({"query": "select 1", "limit": 10_001}, "limit 10001"),
        ({"query": "select '\0'"}, "query: expected 1 to 20000 characters of SQL"),
        ({"query": "select ?", "parameters": ["\udcff"]}, "parameters: '.udcff', expected texts"),
        ({"query": "select ?", "parameters": [[1]]}, r"parameters: \[1\], expected texts"),
        ({"query": "select ?", "parameters": [1] * 201}, "parameters: 201 values"),
    ],
)
def test_bad_input_is_refused_with_field_value_and_expectation(words: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        Statement(**words)  # type: ignore[arg-type]


@pytest.mark.parametrize("parameters", [(), [1, 2], {"a": 1}])
def test_parameters_that_do_not_fit_are_refused(ask: Ask, parameters: object) -> None:
    with pytest.raises(InvalidInputError, match=r"query: .*[Pp]arameter|query: .*Values were not provided"):
        ask("select ? as a", parameters)
