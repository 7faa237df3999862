"""Promises of every watch of other people's calls, and what is known of their ends."""

import functools
import threading

import pytest

from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.watch import AT_ONCE_NS, BLOCKED_NS, Watch, What, seen_end, waited_end
from crosswind.ingest.probe.watched_function import WatchedFunction


def one_step(timeline: Timeline) -> None:
    timeline.begin_step()
    timeline.batch_arrived()


def seen(timeline: Timeline) -> list[tuple[object, ...]]:
    timeline.end_step()
    timeline.settle()
    with timeline.taking(COLLECTIVE) as columns:
        return list(zip(*(columns.get(name, ()) for name in ("operation", "group", "size_bytes")), strict=True))


def described(arguments: tuple[object, ...], _: object) -> What:
    return len(str(arguments[0])), "all_reduce", "world"


def test_calls_around_a_function_are_reported_and_give_what_it_gives() -> None:
    timeline = Timeline(0)
    call = Watch(timeline).around(str.upper, described)
    one_step(timeline)
    assert call("four") == "FOUR"
    assert seen(timeline) == [("all_reduce", "world", 4)]
    with timeline.taking(STEP) as columns:
        assert columns["comm_seconds"][0] > 0  # type: ignore[operator]
    timeline.close()


def test_outside_of_steps_and_in_other_threads_calls_only_pass() -> None:
    timeline = Timeline(0)
    call = Watch(timeline).around(str.upper, described)
    assert call("before") == "BEFORE"
    one_step(timeline)
    thread = threading.Thread(target=call, args=("beside",))
    thread.start()
    thread.join()
    assert seen(timeline) == []
    timeline.close()


def test_a_failure_of_ours_is_logged_once_and_ends_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    def failing(arguments: tuple[object, ...], named: object) -> What:
        raise RecursionError("too deep")

    timeline = Timeline(0)
    call = Watch(timeline).around(str.upper, failing)
    one_step(timeline)
    assert [call("a"), call("b")] == ["A", "B"]
    assert seen(timeline) == []
    [warning] = [record.getMessage() for record in caplog.records]
    assert warning == "crosswind stops watching collectives: RecursionError: too deep"
    timeline.close()


def test_an_end_is_known_when_it_was_seen_at_once_or_waited_for() -> None:
    assert seen_end(900_000, open_at=0, since=AT_ONCE_NS) == 900_000
    assert seen_end(900_000, open_at=0, since=AT_ONCE_NS + 1) is None
    late = AT_ONCE_NS + 1
    assert waited_end(late + BLOCKED_NS, open_at=0, since=late) is None  # it had been done, or ended just then
    assert waited_end(late + BLOCKED_NS + 1, open_at=0, since=late) == late + BLOCKED_NS + 1


def test_what_stands_in_for_a_function_has_all_that_it_had() -> None:
    @functools.cache
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    calls = []
    watched = WatchedFunction(double, lambda *arguments: calls.append(arguments) or double(*arguments))
    assert (watched(4), watched(4), calls) == (8, 8, [(4,), (4,)])
    assert watched.cache_info().hits == 1
    assert (watched.__name__, watched.__doc__) == ("double", "Twice as much.")
    with pytest.raises(AttributeError, match="no attribute 'lower'"):
        watched.lower  # noqa: B018


def test_what_stands_in_for_a_function_may_be_a_method() -> None:
    class Number(int):
        doubled = WatchedFunction(lambda number: 2 * number, lambda number: 2 * number)

    assert Number(3).doubled() == 6
