"""Records of steps whose work a GPU does while the loop runs ahead."""

import threading
import time
from types import SimpleNamespace

import pytest
from tests.ingest.probe.gpu_queue import Gpu, Ticking

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import MetricSet, Scalar
from crosswind.data.schema.steps import COLLECTIVE, PHASES, STEP
from crosswind.ingest.probe.device_clock import ANCHORED_AGAIN_NS, LOOKED_AT, PATIENCE_NS, DeviceClock, Mark
from crosswind.ingest.probe.step import Arrival
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.calls import Call, Calls

WHAT = (64, "all_reduce", "data_parallel")
Row = dict[str, Scalar]


class Clock:
    """The host's, which stands still unless a test moves it on."""

    now = 1_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock.now)
    monkeypatch.setattr(time, "time_ns", lambda: clock.now)
    return clock


@pytest.fixture
def gpu(clock: Clock) -> Gpu:
    return Gpu(clock)


@pytest.fixture
def timeline(gpu: Gpu) -> Timeline:
    timeline = Timeline(3)
    timeline.use_device(DeviceClock(gpu))
    return timeline


def rows(timeline: Timeline, metric_set: MetricSet = STEP) -> list[Row]:
    timeline.settle()
    with timeline.taking(metric_set) as columns:
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def phases(row: Row) -> dict[str, Scalar]:
    assert sum(row[f"{phase}_seconds"] for phase in PHASES) == row["duration_seconds"]  # type: ignore[misc]
    return {phase: row[f"{phase}_seconds"] for phase in PHASES if row[f"{phase}_seconds"]}


def put(mark: Mark | None) -> Mark:
    assert mark is not None
    return mark


def receive(timeline: Timeline) -> Arrival:
    arrival = timeline.arrive(came=put(timeline.mark()))
    assert arrival is not None
    return arrival


def all_reduce(timeline: Timeline, gpu: Gpu, wait: int) -> None:
    arrival = receive(timeline)
    gpu.work(wait)
    timeline.collective_on_device(arrival, WHAT, put(timeline.mark()), arrival.came)


def step(timeline: Timeline, gpu: Gpu, *, loading: int = 0, computing: int = 50, waiting: int = 20) -> None:
    """The host needs 2 ns to put it all into the queue."""
    timeline.begin_step()
    gpu.clock.now += loading
    timeline.batch_arrived()
    gpu.work(computing)
    gpu.clock.now += 2
    all_reduce(timeline, gpu, waiting)
    gpu.work(5)
    timeline.end_step()


def all_passed(timeline: Timeline, gpu: Gpu) -> None:
    gpu.clock.now = max(gpu.clock.now, gpu.free_at)
    timeline.finish_device(0)


def test_steps_and_their_phases_are_the_device_s(timeline: Timeline, gpu: Gpu) -> None:
    for _ in range(3):
        step(timeline, gpu, loading=1)
    assert rows(timeline) == []  # the loop is through, the device is not
    all_passed(timeline, gpu)
    first, second, third = rows(timeline)
    assert [row["ts_ns"] for row in (first, second, third)] == [1_000, 1_076, 1_151]
    assert phases(first) == {"input": 1, "compute": 55, "comm": 20}
    assert phases(second) == phases(third) == {"compute": 55, "comm": 20}  # the loader was quicker than the device
    assert second["tail_seconds"] == 5


def test_a_collective_is_timed_by_when_the_device_came_to_it(timeline: Timeline, gpu: Gpu) -> None:
    step(timeline, gpu)
    step(timeline, gpu, computing=500)
    all_passed(timeline, gpu)
    first, second = rows(timeline, COLLECTIVE)
    assert (first["ts_ns"], first["duration_seconds"]) == (1_050, 20)
    assert (second["ts_ns"], second["duration_seconds"], second["operation"]) == (1_575, 20, "all_reduce")


def test_a_device_without_work_waits_for_its_batch(timeline: Timeline, gpu: Gpu) -> None:
    step(timeline, gpu)
    step(timeline, gpu, loading=100)
    all_passed(timeline, gpu)
    [_, second] = rows(timeline)
    assert phases(second) == {"input": 100 - 75 + 2, "compute": 55, "comm": 20}


def test_a_phase_that_is_left_after_its_step_does_no_harm(timeline: Timeline, gpu: Gpu) -> None:
    timeline.begin_step()
    timeline.batch_arrived()
    with timeline.phase("other"):
        timeline.end_step()
    with timeline.phase("checkpoint"):
        timeline.begin_step()
    timeline.begin_step()
    with timeline.phase("checkpoint"):
        timeline.abandon_step()
    step(timeline, gpu)
    all_passed(timeline, gpu)
    assert [row["step"] for row in rows(timeline)] == [0, 1]


def test_what_is_marked_is_so_where_the_device_stood_still_for_it(timeline: Timeline, gpu: Gpu, clock: Clock) -> None:
    timeline.begin_step()
    timeline.batch_arrived()
    gpu.work(50)
    with timeline.phase("checkpoint"):
        clock.now = gpu.free_at + 30  # it waits for the device, and writes
        with timeline.phase("other"):
            clock.now += 4
    gpu.work(6)
    timeline.end_step()
    all_passed(timeline, gpu)
    [row] = rows(timeline)
    assert phases(row) == {"compute": 56, "checkpoint": 30, "other": 4}


def test_what_was_requested_ahead_is_waited_for_where_the_queue_needs_it(timeline: Timeline, gpu: Gpu) -> None:
    timeline.begin_step()
    timeline.batch_arrived()
    early = receive(timeline)
    gpu.work(50)
    since = put(timeline.mark())
    gpu.work(7)
    timeline.collective_on_device(early, WHAT, put(timeline.mark()), since)
    timeline.end_step()
    all_passed(timeline, gpu)
    assert phases(rows(timeline)[0]) == {"compute": 50, "comm": 7}
    assert rows(timeline, COLLECTIVE)[0]["duration_seconds"] == 57


def test_what_runs_in_another_queue_costs_the_training_nothing(timeline: Timeline, gpu: Gpu) -> None:
    timeline.begin_step()
    timeline.batch_arrived()
    gpu.work(50)
    gpu.queue = 2
    all_reduce(timeline, gpu, 20)
    gpu.queue = 1
    timeline.end_step()
    all_passed(timeline, gpu)
    assert phases(rows(timeline)[0]) == {"compute": 70}
    assert rows(timeline, COLLECTIVE)[0]["duration_seconds"] == 20
    assert not timeline.has_seen_waits  # of which a part may have been within those 70
    step(timeline, gpu)
    assert timeline.has_seen_waits


def test_one_that_outlasts_its_step_gets_its_row_when_it_ends(timeline: Timeline, gpu: Gpu) -> None:
    timeline.begin_step()
    timeline.batch_arrived()
    arrival = receive(timeline)
    timeline.end_step()
    all_passed(timeline, gpu)
    assert len(rows(timeline)) == 1
    timeline.begin_step()
    timeline.batch_arrived()
    gpu.work(40)
    timeline.collective_on_device(arrival, WHAT, put(timeline.mark()), None)
    assert rows(timeline, COLLECTIVE) == []
    timeline.end_step()
    all_passed(timeline, gpu)
    [row] = rows(timeline, COLLECTIVE)
    assert (row["step"], row["duration_seconds"]) == (0, 40)


def test_what_the_host_waits_for_next_to_the_device_is_among_its_times(
    timeline: Timeline, gpu: Gpu, clock: Clock
) -> None:
    timeline.begin_step()
    timeline.batch_arrived()
    gpu.work(50)
    barrier = timeline.arrive()  # long before the device has done its work
    assert barrier is not None
    clock.now += 59
    timeline.collective(barrier, size_bytes=0, operation="barrier", group="world", blocked_since=barrier.time)
    timeline.end_step()
    all_passed(timeline, gpu)
    assert phases(rows(timeline)[0]) == {"compute": 50, "comm": 9}


def test_a_device_that_hangs_at_the_end_costs_no_row(timeline: Timeline, gpu: Gpu) -> None:
    step(timeline, gpu, loading=3)
    gpu.hangs = True
    timeline.finish_device(0)
    [row] = rows(timeline)
    assert (row["duration_seconds"], row["input_seconds"]) == (5, 3)  # the host's


def test_a_device_that_fails_leaves_the_host_s_times(
    timeline: Timeline, gpu: Gpu, caplog: pytest.LogCaptureFixture
) -> None:
    step(timeline, gpu)
    gpu.is_broken = True
    step(timeline, gpu)
    step(timeline, gpu)
    assert [row["duration_seconds"] for row in rows(timeline)] == [2, 2, 2]
    [complaint] = [record.message for record in caplog.records]
    assert complaint.startswith(
        "crosswind continues with the host's clock, the device's is lost: CUDA error: an illegal"
    )


def test_nothing_is_put_into_a_graph_that_is_captured(timeline: Timeline, gpu: Gpu) -> None:
    gpu.is_captured = True
    step(timeline, gpu, loading=3)
    assert phases(rows(timeline)[0]) == {"input": 3, "compute": 2}


def test_marks_within_a_step_that_began_before_the_device_was_used_are_none(gpu: Gpu, clock: Clock) -> None:
    timeline = Timeline(0)
    timeline.begin_step()
    timeline.use_device(DeviceClock(gpu))
    timeline.batch_arrived()
    assert timeline.mark() is None
    clock.now += 7
    timeline.end_step()
    step(timeline, gpu)
    all_passed(timeline, gpu)
    assert [row["duration_seconds"] for row in rows(timeline)] == [7, 75]


def test_events_are_used_again(timeline: Timeline, gpu: Gpu) -> None:
    step(timeline, gpu)
    all_passed(timeline, gpu)
    assert len(gpu.given_back) == 4


def test_an_idle_device_that_passes_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(Ticking(monkeypatch), hangs=True)
    with pytest.raises(UnavailableError, match="passed no event within 200 us"):
        DeviceClock(gpu)


def test_clocks_that_drift_are_brought_together_again(clock: Clock, gpu: Gpu) -> None:
    """The device's clock is a tenth of a per mille fast; times between host and device stay together all the same."""

    class Fast(Gpu):
        def record_aside(self) -> object:  # type: ignore[override]
            return FastEvent(self, self.clock.now)

        def record(self) -> tuple[object, int]:  # type: ignore[override]
            return FastEvent(self, self.clock.now), 1

    class FastEvent(SimpleNamespace):
        def __init__(self, gpu: Gpu, at: int) -> None:
            super().__init__(gpu=gpu, at=at)

        def query(self) -> bool:
            return True

        def elapsed_time(self, end_event: "FastEvent") -> float:
            return float((end_event.at - self.at) * 1.0001 / 1e6)

    device = DeviceClock(Fast(clock))
    for _ in range(1000):
        clock.now += ANCHORED_AGAIN_NS // 10
        mark = device.mark()
        device.look()
        assert mark.ns is not None
        assert abs(mark.ns - clock.now) < 0.0001 * 1.2 * ANCHORED_AGAIN_NS


def test_an_anchor_that_waits_behind_the_training_s_work_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking = Ticking(monkeypatch)
    gpu = Gpu(ticking)
    device = DeviceClock(gpu)
    ticking.pass_by(2 * ANCHORED_AGAIN_NS)
    gpu.is_one_queue = True
    gpu.work(10**9)
    mark = device.mark()
    device.look()
    ticking.pass_by(2 * 10**9)
    device.look()
    assert mark.ns == pytest.approx(gpu.free_at, abs=3_000)


def test_collectives_over_a_gpu_s_tensors_are_timed_by_its_queue(timeline: Timeline, gpu: Gpu) -> None:
    calls, tensor = Calls(timeline), SimpleNamespace(is_cpu=False, is_cuda=True)
    timeline.begin_step()
    timeline.batch_arrived()
    arrival = calls.arrive_with([tensor])
    assert arrival is not None
    gpu.work(10)
    answer = calls.wait_on_device(Call(arrival, *WHAT), lambda: gpu.work(30))
    assert answer is None
    timeline.end_step()
    all_passed(timeline, gpu)
    assert phases(rows(timeline)[0]) == {"compute": 10, "comm": 30}
    [row] = rows(timeline, COLLECTIVE)
    assert (row["duration_seconds"], row["size_bytes"], row["group"]) == (40, 64, "data_parallel")


def test_gradients_of_a_device_are_computed_in_a_thread_of_their_own(gpu: Gpu) -> None:
    timeline = Timeline(0)
    timeline.use_device(DeviceClock(gpu), lambda: threading.current_thread().name == "autograd")
    arrivals: list[Arrival | None] = []

    def gather() -> None:
        arrivals.append(Calls(timeline).arrive_with([SimpleNamespace(is_cpu=False, is_cuda=True)]))

    timeline.begin_step()
    timeline.batch_arrived()
    for name in ("autograd", "checkpoint"):
        thread = threading.Thread(target=gather, name=name)
        thread.start()
        thread.join()
    assert [arrival is not None for arrival in arrivals] == [True, False]


def test_collectives_are_numbered_as_they_were_requested(timeline: Timeline, gpu: Gpu, clock: Clock) -> None:
    """The device comes to the first long after the host has come to the second."""
    timeline.begin_step()
    timeline.batch_arrived()
    gpu.work(100)
    all_reduce(timeline, gpu, 20)
    clock.now += 1
    barrier = timeline.arrive()
    assert barrier is not None
    clock.now += 500
    timeline.collective(barrier, size_bytes=0, operation="barrier", group="world", blocked_since=barrier.time)
    timeline.end_step()
    all_passed(timeline, gpu)
    assert phases(rows(timeline)[0]) == {"compute": 100, "comm": 401}
    operations = {row["sequence"]: row["operation"] for row in rows(timeline, COLLECTIVE)}
    assert operations == {0: "all_reduce", 1: "barrier"}


def test_many_marks_within_one_step_are_requested_before_its_end(timeline: Timeline, gpu: Gpu) -> None:
    timeline.begin_step()
    for _ in range(3 * LOOKED_AT):
        assert timeline.mark() is not None
    assert len(gpu.given_back) > LOOKED_AT


def test_times_of_a_queue_never_run_backwards(timeline: Timeline, gpu: Gpu, clock: Clock) -> None:
    """The device hangs in the middle of a step of which it has passed a part."""
    step(timeline, gpu)
    clock.now = gpu.free_at + 1000
    step(timeline, gpu)
    gpu.hangs = True
    timeline.finish_device(0)
    for row in rows(timeline):
        assert row["duration_seconds"] >= 0  # type: ignore[operator]
        assert all(row[f"{phase}_seconds"] >= 0 for phase in PHASES)  # type: ignore[operator]


def test_where_no_anchor_is_passed_the_digits_of_times_stay_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking = Ticking(monkeypatch)
    gpu = Gpu(ticking)
    device = DeviceClock(gpu)
    first = device._anchor
    gpu.is_one_queue = True
    for _ in range(5):
        gpu.free_at = ticking.pass_by(2 * ANCHORED_AGAIN_NS) + 2 * PATIENCE_NS
        mark = device.mark()
        ticking.pass_by(4 * PATIENCE_NS)
        gpu.free_at = ticking.now + 2 * PATIENCE_NS  # there is more to do
        device.look()
        assert mark.ns == pytest.approx(mark.put_ns + 2 * PATIENCE_NS, abs=3_000)
    assert device._anchor != first


def test_tensors_of_devices_without_a_clock_are_not_timed(clock: Clock) -> None:
    timeline = Timeline(0)
    timeline.begin_step()
    timeline.batch_arrived()
    assert Calls(timeline).arrive_with([SimpleNamespace(is_cpu=False, is_cuda=True)]) is None
