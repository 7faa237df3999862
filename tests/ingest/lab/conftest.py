import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ingest.lab.observed import first_core

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.hosts import Host, hosts
from crosswind.ingest.lab.injectors import Target

RESTING = "import time\ntime.sleep(1000)"


@pytest.fixture(scope="module")
def net() -> Iterator[tuple[Host, ...]]:
    with hosts(3, wired=[2]) as made:
        yield made


@pytest.fixture(scope="module")
def rank(net: tuple[Host, ...]) -> Iterator[int]:
    """A process on the first core, in the first host."""
    with on_the_first_core(net[0], RESTING) as process:
        yield process


@contextmanager
def on_the_first_core(host: Host, program: str) -> Iterator[int]:
    """Runs a program of Python until the block ends."""
    with subprocess.Popen(host.command([sys.executable, "-S", "-c", program]), start_new_session=True) as process:
        os.sched_setaffinity(process.pid, {first_core()})
        while Path(f"/proc/{process.pid}/comm").read_text() in ("nsenter\n", "unshare\n", "sh\n"):
            time.sleep(0.001)
        yield process.pid
        process.kill()


@pytest.fixture
def target(net: tuple[Host, ...], rank: int, tmp_path: Path) -> Target:
    conditions = Conditions.create(tmp_path / "conditions", 2)
    return Target(net[0], (rank,), 1, tmp_path, conditions, (net[1], net[2]), first_core())
