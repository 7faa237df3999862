import subprocess
import time
from dataclasses import replace

import pytest
from tests.ingest.lab.observed import over, used_seconds
from tests.ingest.lab.traffic import in_a_lab
from tests.waiting import until

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.injectors import INJECTORS, Target


@in_a_lab
@pytest.mark.host
def test_a_paused_rank_stands_still_and_goes_on_by_itself(target: Target, rank: int) -> None:
    injector = INJECTORS["pause"]()
    started_ns = injector.start(target, 0.4)
    assert over(lambda: used_seconds(rank), 0.2)[0] == 0
    time.sleep(0.5)
    assert over(lambda: used_seconds(rank), 0.2)[0] > 0
    assert 0.3 < (injector.stop() - started_ns) / 1e9 < 1.0


@in_a_lab
def test_a_stopped_pause_lets_the_rank_go_on_at_once(target: Target, rank: int) -> None:
    injector = INJECTORS["pause"]()
    injector.start(target, 600)
    injector.stop()
    used = used_seconds(rank)
    until(lambda: used_seconds(rank) > used)


@in_a_lab
def test_a_rank_that_dies_in_a_pause_does_not_disturb_its_end(target: Target) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        injector = INJECTORS["pause"]()
        started_ns = injector.start(replace(target, pids=(process.pid,)), 600)
        process.kill()
        process.wait()
        assert injector.stop() >= started_ns


@in_a_lab
def test_a_rank_that_has_ended_cannot_be_paused_or_held(target: Target) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    for kind in ("pause", "cpu_quota"):
        with pytest.raises(UnavailableError):
            INJECTORS[kind]().start(replace(target, pids=(process.pid,)), 1)


@in_a_lab
@pytest.mark.parametrize("kind", ["pause", "cpu_quota"])
def test_a_rank_without_processes_cannot_be_paused_or_held(target: Target, kind: str) -> None:
    with pytest.raises(UnavailableError, match="rank 1: none of its processes is known"):
        INJECTORS[kind]().start(replace(target, pids=()), 1)
