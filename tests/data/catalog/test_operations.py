import threading

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.operations import ATTEMPTS_MAX
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.operation import Operation, OperationState

NAMES = ["a", "b", "c", *(f"model-{number}" for number in range(8))]


def put(catalog: Catalog, *names: str) -> None:
    with catalog.write() as session:
        for number, name in enumerate(names):
            session.operations.add_unless_open(Operation(f"o{number}", "train", {"name": name}, made_ns=number))


def test_an_operation_goes_from_waiting_to_done(catalog: Catalog) -> None:
    put(catalog, "a")
    with catalog.write() as session:
        assert session.operations.is_any_free(0, names=NAMES)
        begun = session.operations.claim("one", now_ns=10, lease_until_ns=20, names=NAMES)
        assert begun is not None
        assert (begun.state, begun.started_ns, begun.owner, begun.attempts) == (OperationState.RUNNING, 10, "one", 1)
        session.operations.beat("o0", "one", lease_until_ns=30, progress=0.5)
        assert (session.operations.get("o0").progress, session.operations.get("o0").lease_until_ns) == (0.5, 30)
        done = session.operations.finish("o0", "one", now_ns=25, result={"version": 3})
        assert (done.state, done.ended_ns, done.result, done.progress) == (OperationState.DONE, 25, {"version": 3}, 1.0)
        assert not session.operations.is_any_free(10**9, names=NAMES)


def test_the_oldest_is_begun_first_or_the_one_that_is_named(catalog: Catalog) -> None:
    put(catalog, "a", "b", "c")
    with catalog.write() as session:
        named = session.operations.claim("one", now_ns=1, lease_until_ns=2, names=NAMES, operation_id="o2")
        oldest = session.operations.claim("one", now_ns=1, lease_until_ns=2, names=NAMES)
        assert named is not None
        assert oldest is not None
        assert (named.operation_id, oldest.operation_id) == ("o2", "o0")
        assert session.operations.claim("one", now_ns=1, lease_until_ns=2, names=NAMES, operation_id="o2") is None


def test_what_somebody_does_not_know_how_to_do_is_left_to_others(catalog: Catalog) -> None:
    put(catalog, "a", "b")
    with catalog.write() as session:
        assert not session.operations.is_any_free(0, names=[])
        assert session.operations.claim("old", now_ns=1, lease_until_ns=2, names=[]) is None
        operation = session.operations.claim("new", now_ns=1, lease_until_ns=2, names=["b"])
        assert operation is not None
        assert operation.operation_id == "o1"


def test_what_waits_or_runs_already_is_not_asked_for_twice(catalog: Catalog) -> None:
    put(catalog, "a")
    again = Operation("o9", "train", {"name": "a"}, made_ns=5)
    with catalog.write() as session:
        assert session.operations.add_unless_open(again).operation_id == "o0"
        session.operations.claim("one", now_ns=1, lease_until_ns=2, names=NAMES)
        assert session.operations.add_unless_open(again).operation_id == "o0"
        session.operations.fail("o0", "one", now_ns=2, error="broke")
        assert session.operations.add_unless_open(again) == again
        assert [operation.operation_id for operation in session.operations.find("train")] == ["o9", "o0"]
        waiting = session.operations.find("train", states=[OperationState.WAITING])
        assert [operation.operation_id for operation in waiting] == ["o9"]


def test_a_dead_owners_operation_is_taken_over_once_its_lease_ran_out(catalog: Catalog) -> None:
    put(catalog, "a")
    with catalog.write() as session:
        session.operations.claim("dead", now_ns=10, lease_until_ns=20, names=NAMES)
        assert session.operations.claim("next", now_ns=20, lease_until_ns=30, names=NAMES) is None
        taken = session.operations.claim("next", now_ns=21, lease_until_ns=31, names=NAMES)
        assert taken is not None
        assert (taken.owner, taken.attempts) == ("next", 2)
        for late in (
            lambda: session.operations.beat("o0", "dead", lease_until_ns=99),
            lambda: session.operations.finish("o0", "dead", now_ns=25, result={}),
            lambda: session.operations.fail("o0", "dead", now_ns=25, error="x"),
            lambda: session.operations.release("o0", "dead"),
        ):
            with pytest.raises(ConflictError, match="running by 'next', expected running by 'dead'"):
                late()


def test_an_operation_that_is_given_back_waits_as_if_never_begun(catalog: Catalog) -> None:
    put(catalog, "a")
    with catalog.write() as session:
        before = session.operations.get("o0")
        session.operations.claim("one", now_ns=10, lease_until_ns=20, names=NAMES)
        session.operations.release("o0", "one")
        assert session.operations.get("o0") == before


def test_what_ends_its_process_each_time_is_not_begun_for_ever(catalog: Catalog) -> None:
    put(catalog, "a")
    with catalog.write() as session:
        for turn in range(ATTEMPTS_MAX):
            assert (
                session.operations.claim("one", now_ns=100 * turn, lease_until_ns=100 * turn + 1, names=NAMES)
                is not None
            )
        assert session.operations.claim("one", now_ns=1000, lease_until_ns=1001, names=NAMES) is None
        failed = session.operations.get("o0")
    assert (failed.state, failed.ended_ns) == (OperationState.FAILED, 1000)
    assert failed.error == "begun 3 times, and its process ended each time before it did"


def test_an_operation_that_is_not_there_is_named(catalog: Catalog) -> None:
    with catalog.write() as session:
        with pytest.raises(NotFoundError, match="operation 'o7'"):
            session.operations.get("o7")
        with pytest.raises(NotFoundError, match="operation 'o7'"):
            session.operations.finish("o7", "one", now_ns=1, result={})


def test_many_who_claim_at_once_share_the_operations_without_repeat(catalog: Catalog) -> None:
    put(catalog, *(f"model-{number}" for number in range(8)))
    claimed: list[str] = []

    def work(owner: str) -> None:
        while True:
            with catalog.write() as session:
                operation = session.operations.claim(owner, now_ns=1, lease_until_ns=2, names=NAMES)
            if operation is None:
                return
            claimed.append(operation.operation_id)

    threads = [threading.Thread(target=work, args=(f"owner {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(claimed) == [f"o{number}" for number in range(8)]
