"""The edge to torch.cuda, over stand-ins for what a machine without a GPU lacks."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.ingest.probe import adapters
from crosswind.ingest.probe.adapters import ddp
from crosswind.ingest.probe.cuda_events import CudaEvents, follow, is_in_backward
from crosswind.ingest.probe.device_clock import DeviceClock
from crosswind.ingest.probe.timeline import Timeline


class Stream:
    """The current one is 7."""

    def __init__(self, device: object = None) -> None:
        self.device, self.device_index, self.cuda_stream = device, 1, 7


class Event:
    """Passed as soon as it is recorded."""

    made = 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.stream: Stream | None = None
        Event.made += 1

    def record(self, stream: Stream) -> None:
        self.stream, self.at = stream, time.perf_counter_ns()

    def query(self) -> bool:
        return self.stream is not None

    def elapsed_time(self, end_event: "Event") -> float:
        return float(end_event.at - self.at) / 1e6


@pytest.fixture
def capturing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """torch.cuda as far as it is used; its last item says whether a graph is captured."""
    capturing, current = [False], Stream()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[-1])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return capturing


def test_events_go_to_the_current_stream_and_anchors_to_their_own(capturing: list[bool]) -> None:
    events = CudaEvents("cuda:1")
    (event, queue), aside = events.record(), events.record_aside()
    assert (event.stream is torch.cuda.current_stream("cuda:1"), queue) == (True, 7)
    assert (aside.stream.device, aside.stream is event.stream) == ("cuda:1", False)


def test_pytorch_is_asked_once_for_an_object_of_each_stream(
    capturing: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, handles = {7: Stream(), 9: Stream()}, [7, 9, 7, 9]
    made: list[int] = []

    def current(_: object) -> Stream:
        made.append(handles[0])
        return streams[handles[0]]

    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: handles[0] * index, raising=False)
    monkeypatch.setattr(torch.cuda, "current_stream", current)
    events, seen = CudaEvents("cuda:1"), []
    while handles:
        event, queue = events.record()
        seen.append((event.stream is streams[handles.pop(0)], queue))
    assert (seen, made) == ([(True, 7), (True, 9), (True, 7), (True, 9)], [7, 9])


def test_what_is_given_back_is_recorded_again(capturing: list[bool]) -> None:
    events = CudaEvents("cuda:0")
    first = events.record()
    events.give_back(first[0])
    assert events.record() == first


def test_a_captured_stream_is_left_alone(capturing: list[bool]) -> None:
    assert not CudaEvents("cuda:0").are_refused()
    capturing.append(True)
    assert CudaEvents("cuda:0").are_refused()


def test_a_gpu_is_followed_once_and_the_host_and_others_not(
    capturing: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline = Timeline(0)
    follow(torch.device("cpu"), timeline)
    assert not timeline.has_device
    with pytest.raises(InvalidInputError, match="'mps' is not timed; expected cpu or cuda"):
        follow(torch.device("mps"), timeline)
    follow(torch.device("cuda"), timeline)
    assert timeline.has_device
    monkeypatch.delattr(torch.cuda, "synchronize")  # it would be waited for again
    follow(torch.device("cuda"), timeline)


def test_a_module_without_ranks_is_timed_by_its_device_and_no_collective_is_watched() -> None:
    timeline, allreduce = Timeline(0), distributed.ProcessGroup.allreduce
    model = nn.Linear(2, 2)
    assert adapters.watch(model, timeline) is model
    assert (distributed.ProcessGroup.allreduce is allreduce, timeline.has_device) == (True, False)
    with pytest.raises(InvalidInputError, match="'meta' is not timed; expected cpu or cuda"):
        adapters.watch(nn.Linear(2, 2, device="meta"), Timeline(0))


def test_threads_that_compute_gradients_are_known() -> None:
    seen: list[bool] = []
    weight = torch.ones(2, requires_grad=True)
    weight.register_hook(lambda gradient: seen.append(is_in_backward()))
    seen.append(is_in_backward())
    weight.sum().backward()
    assert seen == [False, True]


@pytest.fixture
def lone_rank(tmp_path: Path) -> Iterator[None]:
    store = distributed.FileStore(str(tmp_path / "rendezvous"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("lone_rank")
def test_a_backward_pass_reports_by_marks_when_the_last_gradient_was_there(
    capturing: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real gradients and a real reduction, on the CPU; only the marks are those of a device."""
    monkeypatch.setattr(
        ddp, "follow", lambda device, timeline: timeline.use_device(DeviceClock(CudaEvents(device)), is_in_backward)
    )
    timeline, model = Timeline(0), DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2)))
    ddp.watch(model, timeline)
    for _ in range(6):
        timeline.begin_step()
        timeline.batch_arrived()
        model(torch.ones(4, 8)).sum().backward()
        timeline.end_step()
    timeline.finish_device(1)
    timeline.settle()
    with timeline.taking(STEP) as steps, timeline.taking(COLLECTIVE) as collectives:
        assert collectives["step"] == [0, 1, 2, 3, 4, 5]
        assert all(duration > 0 for duration in collectives["duration_seconds"])  # type: ignore[operator]
        assert collectives["size_bytes"] == [4 * (8 * 8 + 8 + 8 * 2 + 2)] * 6
        assert steps["comm_seconds"] == collectives["duration_seconds"]
        assert all(tail > 0 for tail in steps["tail_seconds"])  # type: ignore[operator]
    timeline.close()
