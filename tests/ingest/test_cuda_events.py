"""The edge to torch.cuda, over stand-ins for what a machine without a GPU lacks."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from crosswind.data.errors import InvalidInputError
from crosswind.data.steps import COLLECTIVE, STEP
from crosswind.ingest.probe.adapters import ddp
from crosswind.ingest.probe.cuda_events import CudaEvents, clock_of
from crosswind.ingest.probe.device_clock import DeviceClock
from crosswind.ingest.probe.timeline import Timeline


class Stream:
    """The current one is 7."""

    def __init__(self, device: object = None) -> None:
        self.device, self.cuda_stream = device, 7


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
    recorded, aside = events.record(), events.record_aside()
    assert recorded is not None
    event, queue = recorded
    assert (event.stream is torch.cuda.current_stream("cuda:1"), queue) == (True, 7)
    assert (aside.stream.device, aside.stream is event.stream) == ("cuda:1", False)


def test_what_is_given_back_is_recorded_again(capturing: list[bool]) -> None:
    events = CudaEvents("cuda:0")
    first = events.record()
    assert first is not None
    events.give_back(first[0])
    assert events.record() == first


def test_a_captured_stream_gets_no_events(capturing: list[bool]) -> None:
    capturing.append(True)
    assert (CudaEvents("cuda:0").record(), CudaEvents("cuda:0").record_aside()) == (None, None)


def test_the_host_needs_no_clock_and_other_devices_have_none(capturing: list[bool]) -> None:
    assert clock_of(torch.device("cpu")) is None
    assert clock_of(torch.device("cuda")) is not None
    with pytest.raises(InvalidInputError, match="'mps' is not timed; expected cpu or cuda"):
        clock_of(torch.device("mps"))


@pytest.fixture
def lone_rank(tmp_path: Path) -> Iterator[None]:
    store = distributed.FileStore(str(tmp_path / "rendezvous"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("lone_rank")
def test_a_backward_pass_tells_by_marks_when_the_last_gradient_was_there(
    capturing: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real gradients and a real reduction, on the CPU; only the marks are those of a device."""
    monkeypatch.setattr(ddp, "clock_of", lambda device: DeviceClock(CudaEvents(device)))
    timeline, model = Timeline(0), DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2)))
    ddp.watch(model, timeline)
    for _ in range(6):
        timeline.begin_step()
        timeline.batch_arrived()
        model(torch.ones(4, 8)).sum().backward()
        timeline.end_step()
    timeline.finish_device(1)
    timeline.settle()
    with timeline.taking(STEP) as steps, timeline.taking(COLLECTIVE) as told:
        assert told["step"] == [0, 1, 2, 3, 4, 5]
        assert all(duration > 0 for duration in told["duration_seconds"])  # type: ignore[operator]
        assert told["size_bytes"] == [4 * (8 * 8 + 8 + 8 * 2 + 2)] * 6
        assert steps["comm_seconds"] == told["duration_seconds"]
        assert all(tail > 0 for tail in steps["tail_seconds"])  # type: ignore[operator]
    timeline.close()
