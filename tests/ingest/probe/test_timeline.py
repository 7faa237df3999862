import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import MetricSet, Scalar
from crosswind.data.schema.steps import COLLECTIVE, PHASES, PROGRESS, STEP
from crosswind.ingest.probe.step import Arrival
from crosswind.ingest.probe.thread_usage import ThreadUsageReader, usage_of
from crosswind.ingest.probe.timeline import BUFFERED_ROWS, UNSETTLED_STEPS, Timeline

EPOCH = 1_700_000_000_000_000_000
Row = dict[str, Scalar]


class Clock:
    """The machine's clocks, which stand still unless a test moves them on."""

    def __init__(self) -> None:
        self.now = 1_000
        self.utc_offset = EPOCH

    def work(self, nanoseconds: int) -> None:
        self.now += nanoseconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock.now)
    monkeypatch.setattr(time, "time_ns", lambda: clock.now + clock.utc_offset)
    return clock


def rows(timeline: Timeline, metric_set: MetricSet = STEP) -> list[Row]:
    timeline.settle()
    with timeline.taking(metric_set) as columns:
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def phases(row: Row) -> dict[str, Scalar]:
    return {phase: row[f"{phase}_seconds"] for phase in PHASES}


def end(timeline: Timeline, arrival: Arrival | None, *, blocked_since: int | None = None) -> None:
    assert arrival is not None
    timeline.collective(
        arrival, size_bytes=4, operation="all_reduce", group="data_parallel", blocked_since=blocked_since
    )


def all_reduce(timeline: Timeline, clock: Clock, wait: int) -> None:
    arrival = timeline.arrive()
    assert arrival is not None
    clock.work(wait)
    end(timeline, arrival, blocked_since=arrival.time)


def one_step(timeline: Timeline, clock: Clock, body: Callable[[], None], *, waiting: int = 10) -> Row:
    timeline.begin_step()
    clock.work(waiting)
    timeline.batch_arrived()
    body()
    timeline.end_step()
    [row] = rows(timeline)
    return row


def test_a_step_is_split_into_phases_that_sum_to_it(clock: Clock) -> None:
    timeline = Timeline(3)

    def body() -> None:
        clock.work(50)
        first = timeline.arrive()
        clock.work(20)
        waiting_since = clock.now
        clock.work(10)
        end(timeline, first)
        clock.work(20)
        end(timeline, timeline.arrive(waiting_since + EPOCH), blocked_since=waiting_since)
        clock.work(5)
        with timeline.phase("checkpoint"):
            clock.work(40)
        with timeline.phase("other"):
            clock.work(7)

    row = one_step(timeline, clock, body)
    assert (row["ts_ns"], row["rank"], row["step"], row["duration_seconds"]) == (1_000 + EPOCH, 3, 0, 162)
    assert phases(row) == {"input": 10, "compute": 75, "comm": 30, "checkpoint": 40, "other": 7}
    assert row["tail_seconds"] == 5  # what was computed after the collective; the marked phases are not of it


def test_what_the_loop_stood_still_for_is_communication_once(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        gather = timeline.arrive()  # launched early, waited for late
        clock.work(30)
        all_reduce(timeline, clock, 7)
        waiting_since = clock.now
        clock.work(10)
        end(timeline, gather, blocked_since=waiting_since)
        end(timeline, timeline.arrive(), blocked_since=waiting_since)  # the same wait ended two of them
        unwaited = timeline.arrive()
        clock.work(9)
        end(timeline, unwaited)

    row = one_step(timeline, clock, body)
    assert phases(row) == {"input": 10, "compute": 39, "comm": 17, "checkpoint": 0, "other": 0}
    assert row["tail_seconds"] == 9


def test_a_wait_counts_for_the_step_in_which_the_loop_waits(clock: Clock) -> None:
    timeline = Timeline(0)
    launched: list[Arrival | None] = []
    one_step(timeline, clock, lambda: launched.append(timeline.arrive()))

    def body() -> None:
        since = clock.now
        clock.work(8)
        end(timeline, launched[0], blocked_since=since)
        clock.work(1)

    assert phases(one_step(timeline, clock, body)) == {
        "input": 10,
        "compute": 1,
        "comm": 8,
        "checkpoint": 0,
        "other": 0,
    }


def test_a_wait_within_a_phase_is_that_phase_alone(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        arrival = timeline.arrive()
        clock.work(2)
        with timeline.phase("checkpoint"):
            since = clock.now
            clock.work(8)
            end(timeline, arrival, blocked_since=since)

    row = one_step(timeline, clock, body)
    assert phases(row) == {"input": 10, "compute": 2, "comm": 0, "checkpoint": 8, "other": 0}


def test_what_is_marked_behind_an_unawaited_end_is_no_tail(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        end(timeline, timeline.arrive())
        clock.work(2)
        with timeline.phase("checkpoint"):
            clock.work(8)

    assert one_step(timeline, clock, body)["tail_seconds"] == 2


def test_what_other_threads_do_is_in_no_step(clock: Clock) -> None:
    timeline = Timeline(0)
    arrivals: list[Arrival | None] = []

    def body() -> None:
        thread = threading.Thread(target=lambda: arrivals.append(timeline.arrive()))
        thread.start()
        thread.join()

    one_step(timeline, clock, body)
    assert arrivals == [None]
    assert rows(timeline, COLLECTIVE) == []


def test_what_somebody_else_noted_is_numbered_among_ours_by_its_time(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        clock.work(10)
        noted = clock.now + EPOCH
        clock.work(10)
        all_reduce(timeline, clock, 2)
        first = timeline.arrive(noted)
        assert first is not None
        timeline.collective_until(None, first, (8, "all_reduce", "data_parallel"))
        last = timeline.arrive(noted + 4)
        assert last is not None
        timeline.collective_until(last.time + 3, last, (16, "all_reduce", "data_parallel"), last.time)

    row = one_step(timeline, clock, body)
    assert phases(row) == {"input": 10, "compute": 17, "comm": 5, "checkpoint": 0, "other": 0}
    collectives = [
        (collective["sequence"], collective["size_bytes"], collective["duration_seconds"])
        for collective in rows(timeline, COLLECTIVE)
    ]
    assert collectives == [(0, 8, None), (1, 16, 3), (2, 4, 2)]


def test_a_value_is_of_the_step_that_runs_or_comes(clock: Clock) -> None:
    timeline = Timeline(2)
    one_step(timeline, clock, lambda: timeline.record("loss", 0.5))
    timeline.record("accuracy", 0.9)
    timeline.record("loss", float("nan"))
    progress = [(row["rank"], row["step"], row["name"], row["value"]) for row in rows(timeline, PROGRESS)]
    assert progress == [(2, 0, "loss", 0.5), (2, 1, "accuracy", 0.9), (2, 1, "loss", None)]


def test_collectives_are_numbered_by_arrival_whichever_ends_first(clock: Clock) -> None:
    timeline = Timeline(1)
    one_step(timeline, clock, lambda: None)

    def body() -> None:
        first = timeline.arrive()
        clock.work(10)
        second = timeline.arrive()
        clock.work(5)
        end(timeline, second)
        end(timeline, first)

    one_step(timeline, clock, body)
    keys = ("ts_ns", "rank", "step", "sequence", "duration_seconds")
    collectives = [tuple(row[key] for key in keys) for row in rows(timeline, COLLECTIVE)]
    assert collectives == [(1_020 + EPOCH, 1, 1, 0, 15), (1_030 + EPOCH, 1, 1, 1, 5)]


def test_a_collective_that_outlasts_its_step_stays_its_own(clock: Clock) -> None:
    timeline = Timeline(0)
    late: list[Arrival | None] = []
    one_step(timeline, clock, lambda: late.append(timeline.arrive()))
    following = one_step(timeline, clock, lambda: end(timeline, late[0]))
    assert following["comm_seconds"] == 0
    [row] = rows(timeline, COLLECTIVE)
    assert (row["step"], row["duration_seconds"]) == (0, 10)


def test_a_step_begins_where_the_last_one_ended(clock: Clock) -> None:
    timeline = Timeline(0)
    one_step(timeline, clock, lambda: clock.work(5))
    clock.work(100)  # the loop's own overhead, and the loader's
    row = one_step(timeline, clock, lambda: clock.work(5), waiting=1)
    assert (row["ts_ns"], row["input_seconds"], row["duration_seconds"]) == (1_015 + EPOCH, 101, 106)


def test_a_phase_within_a_phase_counts_once(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        with timeline.phase("checkpoint"):
            clock.work(10)
            with timeline.phase("other"):
                clock.work(3)
            clock.work(1)

    row = one_step(timeline, clock, body)
    assert phases(row) == {"input": 10, "compute": 0, "comm": 0, "checkpoint": 11, "other": 3}


def test_a_phase_within_the_loader_is_not_waiting_for_it(clock: Clock) -> None:
    timeline = Timeline(0)
    timeline.begin_step()
    with timeline.phase("other"):
        clock.work(30)
    clock.work(4)
    timeline.batch_arrived()
    timeline.end_step()
    [row] = rows(timeline)
    assert phases(row) == {"input": 4, "compute": 0, "comm": 0, "checkpoint": 0, "other": 30}


def test_a_collective_within_a_phase_belongs_to_the_phase(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        with timeline.phase("other"):
            all_reduce(timeline, clock, 50)

    row = one_step(timeline, clock, body)
    assert phases(row) == {"input": 10, "compute": 0, "comm": 0, "checkpoint": 0, "other": 50}
    assert row["tail_seconds"] is None
    assert len(rows(timeline, COLLECTIVE)) == 1


def test_a_step_that_is_left_is_not_counted_and_numbers_go_on(clock: Clock) -> None:
    timeline = Timeline(0)
    one_step(timeline, clock, lambda: None)
    timeline.begin_step()
    timeline.abandon_step()
    clock.work(1_000_000)  # between two epochs
    row = one_step(timeline, clock, lambda: None)
    assert (row["step"], row["duration_seconds"]) == (1, 10)


def test_collectives_and_phases_outside_a_step_are_left_out(clock: Clock) -> None:
    timeline = Timeline(0)
    assert timeline.arrive() is None
    with timeline.phase("checkpoint"):
        clock.work(10)
    assert phases(one_step(timeline, clock, lambda: None))["checkpoint"] == 0


def test_an_unknown_phase_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match=r"phase 'eval': expected one of checkpoint, other"):  # noqa: SIM117
        with Timeline(0).phase("eval"):
            pytest.fail("an unknown phase was entered")


def test_a_clock_that_is_set_leaves_durations_alone(clock: Clock) -> None:
    timeline = Timeline(0)

    def body() -> None:
        clock.utc_offset -= 3_600_000_000_000
        clock.work(5)

    assert one_step(timeline, clock, body)["duration_seconds"] == 15
    following = one_step(timeline, clock, lambda: None)
    assert (following["duration_seconds"], following["ts_ns"]) == (10, 1_015 + clock.utc_offset)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_in_a_step_its_phases_sum_to_it(clock: Clock, seed: int) -> None:
    chance, timeline = random.Random(seed), Timeline(0)
    pending: list[Arrival | None] = []

    def act(depth: int = 0) -> None:
        for _ in range(chance.randrange(6)):
            clock.work(chance.randrange(100))
            if chance.random() < 0.3:
                pending.append(timeline.arrive(chance.choice([None, clock.now + EPOCH - chance.randrange(50)])))
            elif pending and chance.random() < 0.5:  # perhaps of an earlier phase, or step
                since = chance.choice([None, clock.now - chance.randrange(50)])
                end(timeline, pending.pop(chance.randrange(len(pending))), blocked_since=since)
            elif depth < 3:
                with timeline.phase(chance.choice(["checkpoint", "other"])):
                    act(depth + 1)

    for _ in range(20):
        timeline.begin_step()
        act()
        timeline.batch_arrived()
        act()
        timeline.end_step()
        [row] = rows(timeline)
        parts = [value for value in phases(row).values() if isinstance(value, int)]
        assert sum(parts) == row["duration_seconds"]
        assert min(parts) >= 0


def test_rows_are_kept_until_they_are_written(clock: Clock) -> None:
    timeline = Timeline(0)
    timeline.begin_step()
    timeline.end_step()
    timeline.settle()
    with pytest.raises(OSError, match="disk full"), timeline.taking(STEP):
        raise OSError("disk full")
    timeline.begin_step()
    timeline.end_step()
    assert [row["step"] for row in rows(timeline)] == [0, 1]
    assert rows(timeline) == []


def test_the_oldest_rows_make_room_and_are_counted() -> None:
    timeline = Timeline(0)
    for _ in range(BUFFERED_ROWS + 5):
        timeline.begin_step()
        timeline.end_step()
        timeline.settle()
    timeline.make_room()
    assert timeline.dropped_rows == 5
    kept = rows(timeline)
    assert (len(kept), kept[0]["step"]) == (BUFFERED_ROWS, 5)


def test_a_writer_that_hangs_costs_steps_and_not_memory() -> None:
    timeline = Timeline(0)
    for _ in range(UNSETTLED_STEPS + 2):
        timeline.begin_step()
        timeline.end_step()
    assert timeline.dropped_rows == 2
    assert len(rows(timeline)) == UNSETTLED_STEPS


def test_closing_says_how_many_rows_nobody_took(clock: Clock) -> None:
    timeline = Timeline(0)
    one_step(timeline, clock, lambda: None)
    timeline.begin_step()
    timeline.end_step()
    timeline.settle()
    assert timeline.close() == 1
    assert timeline.close() == 0


def test_the_time_in_the_run_queue_is_the_second_field_of_schedstat(tmp_path: Path) -> None:
    (tmp_path / "thread-self").mkdir()
    schedstat = tmp_path / "thread-self" / "schedstat"
    schedstat.write_text("111 222 3\n")
    reader = ThreadUsageReader(tmp_path)
    reader.follow()
    assert usage_of(reader.read()).run_queue_wait_ns == 222
    schedstat.write_text("")
    assert usage_of(reader.read()).run_queue_wait_ns is None  # and nothing is raised into the training loop
    reader.close()


def test_a_kernel_without_schedstat_leaves_the_run_queue_open(tmp_path: Path) -> None:
    usage = usage_of(ThreadUsageReader(tmp_path).read())
    assert usage.run_queue_wait_ns is None
    assert usage.minor_faults > 0


def test_the_use_counted_is_that_of_the_thread_in_which_the_loop_runs() -> None:
    timeline, seen = Timeline(0), []

    def loop() -> None:
        timeline.begin_step()
        timeline.batch_arrived()
        while time.thread_time() < 0.2:
            pass
        _, text = timeline._usage.read()
        seen.append((int((text or b"0").split()[0]) * 1e-9, time.thread_time()))
        timeline.end_step()

    for _ in range(2):  # two threads, one after the other, and neither the one that made the timeline
        thread = threading.Thread(target=loop)
        thread.start()
        thread.join()
    timeline.close()
    for counted, measured in seen:
        assert counted == pytest.approx(measured, abs=0.05)


def in_haste(timeline: Timeline, came: int, end: int) -> None:
    timeline.waited(came, end, (4, "all_reduce", "data_parallel"))


def in_full(timeline: Timeline, came: int, end: int) -> None:
    if arrival := timeline.arrive():
        arrival.time = came
        timeline.collective_until(end, arrival, (4, "all_reduce", "data_parallel"), came)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_noted_in_haste_makes_the_same_rows(clock: Clock, seed: int) -> None:
    recorded = []
    for note in (in_haste, in_full):
        chance, clock.now = random.Random(seed), 1000
        timeline = Timeline(0)
        for _ in range(4):
            _any_step(timeline, clock, chance, note)
        recorded.append(([(phases(row), row["tail_seconds"]) for row in rows(timeline)], rows(timeline, COLLECTIVE)))
    assert recorded[0] == recorded[1]
    assert recorded[0][1]


def _any_step(
    timeline: Timeline, clock: Clock, chance: random.Random, note: Callable[[Timeline, int, int], None]
) -> None:
    """With waits before the batch, in the body and in a phase of it, and one behind the step's end."""

    def wait() -> None:
        clock.work(chance.randrange(5))
        came = clock.now
        clock.work(chance.randrange(9))
        note(timeline, came, clock.now)

    timeline.begin_step()
    wait()
    timeline.batch_arrived()
    wait()
    with timeline.phase("checkpoint"):
        wait()
    wait()
    timeline.end_step()
    wait()
