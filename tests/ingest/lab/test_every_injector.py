import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingest.lab.observed import alive, at_work, first_core, running_companions
from tests.ingest.lab.traffic import in_a_lab

from crosswind.ingest.lab.conditions import KNOBS, Conditions
from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.injectors import INJECTORS, Injector, Target


@pytest.mark.parametrize("knob", KNOBS)
def test_what_the_program_does_to_itself_it_reads_from_its_conditions(tmp_path: Path, knob: str) -> None:
    with Conditions.create(tmp_path / "conditions", 2) as conditions, Conditions.attach(conditions.path) as seen:
        with at_work(knob.removesuffix("_ms"), Target(Host("cwlab-1-2-abcdef", 0), (), 1, tmp_path, conditions), 12.5):
            attached = [[seen.get(rank, name) for name in KNOBS] for rank in (0, 1)]
            assert attached == [[0.0, 0.0, 0.0], [12.5 if name == knob else 0.0 for name in KNOBS]]
        assert seen.get(1, knob) == 0.0


@in_a_lab
@pytest.mark.parametrize("kind", INJECTORS)
def test_every_fault_can_be_switched_twice_and_says_when(target: Target, kind: str) -> None:
    injector: Injector = INJECTORS[kind]()
    where = replace(target, host=target.neighbours[1], neighbours=(target.host,))
    begin = time.time_ns()
    injector.stop()
    started_ns = injector.start(where, max(1.0, injector.limits[0]))
    running = running_companions()
    injector.start(where, max(1.0, injector.limits[0]))
    assert running_companions() == running
    ended_ns = injector.stop()
    injector.stop()
    assert begin <= started_ns <= ended_ns <= time.time_ns()
    assert len(running_companions()) == 1  # the wire


@in_a_lab
def test_processes_of_faults_end_with_the_lab_but_not_with_the_thread_that_started_them() -> None:
    script = """
import sys, threading, time
from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.injectors.cpu_hog import spin
found = []
thread = threading.Thread(target=lambda: found.append(companion.start(spin, int(sys.argv[1]))))
thread.start()
thread.join()
time.sleep(0.1)
print(found[0].process.pid, found[0].process.poll(), flush=True)
time.sleep(1000)
"""
    command = [sys.executable, "-c", script, str(first_core())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        pid, ended = lab.stdout.readline().split()
        assert ended == "None"
        lab.kill()
    deadline = time.monotonic() + 5
    while alive([int(pid)]):
        assert time.monotonic() < deadline, "it outlives the lab"
        time.sleep(0.01)
