"""A process that was stopped while it waited for others."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.ingest.spooled import rows

from crosswind.ingest.probe.step import Step, Stretch, step_row
from crosswind.ingest.probe.stops import LEAST_NS, Stops
from crosswind.ingest.probe.thread_usage import ThreadUsageReader

MILLISECOND = 1_000_000
WAITING = """
import sys, time, crosswind
with crosswind.run(workload="toy", spool=sys.argv[1]) as run:
    for _ in run.steps(range(2)):
        came = time.perf_counter_ns()
        print("waiting", flush=True)
        time.sleep(1)
        run._timeline.waited(came, time.perf_counter_ns(), (8, "all_reduce", "default"))
"""


@pytest.mark.host
def test_while_it_is_stopped_a_process_computes_and_waits_for_nobody(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", WAITING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait() == 0
    child.stdout.close()
    stopped, other = rows(tmp_path, "step").itertuples()
    assert stopped.compute_seconds > 3e8
    assert stopped.comm_seconds < 7e8
    assert stopped.comm_seconds + stopped.compute_seconds + stopped.input_seconds == stopped.duration_seconds
    assert other.comm_seconds > 9.5e8
    assert other.compute_seconds < 5e7


def row(blocked: list[Stretch], stops: list[tuple[int, int]]) -> tuple[object, object]:
    usage = ThreadUsageReader()
    usage.follow()
    step = Step(0, 0, 0, usage.read(), blocked=blocked, end=1000)
    usage.close()
    values = step_row(step, 0, stops)
    return values[5], values[6]


@pytest.mark.parametrize(
    ("stops", "comm"),
    [
        ([], 500),
        ([(0, 100)], 500),  # before
        ([(150, 250)], 450),
        ([(100, 700)], 0),
        ([(350, 450), (400, 700)], 150),  # two in one time, and beyond the end
        ([(250, 350)], 400),  # two collectives, one in the other's time
    ],
)
def test_of_a_stop_counts_what_lies_within_collectives(stops: list[tuple[int, int]], comm: int) -> None:
    blocked = [Stretch(200, 600, 0), Stretch(300, 700, 0)]
    assert row(blocked, stops) == (1000 - comm, comm)


def test_short_stops_are_none_and_old_ones_are_let_go_of() -> None:
    stops = Stops()
    stops.note(0, LEAST_NS)
    assert stops.since(0) == []
    for second in range(1000):
        stops.note(second * 1000 * MILLISECOND, (second * 1000 + 100) * MILLISECOND)
    assert stops.since(0)[-1] == (999_000 * MILLISECOND, 999_100 * MILLISECOND)
    assert len(stops.since(0)) == 100
    assert len(stops.since(999_050 * MILLISECOND)) == 1


def test_naps_end_with_the_event() -> None:
    stops, event = Stops(), threading.Event()
    stops.follow(threading.get_native_id())
    threading.Timer(0.15, event.set).start()
    began = time.monotonic()
    assert stops.wait(event, 60.0)
    assert time.monotonic() - began < 30
    assert not stops.wait(threading.Event(), 0.01)
    stops.close()
