"""The two ranks, started once: importing torch for every run would take longer than the run."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.trial import Configuration

RANKS = 2
REPOSITORY = Path(__file__).resolve().parents[2]
END_SECONDS = 90.0  # longer than a rank waits for the other
ENVIRONMENT = {"GLOO_SOCKET_IFNAME": "lo", "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
LOG_TAIL = 600  # characters


@dataclass(frozen=True)
class Ranks:
    """Running ranks; they train together what they are sent."""

    processes: tuple[subprocess.Popen[str], ...]
    log: Path

    def measure(self, configuration: Configuration) -> float:
        """Trains with it again; seconds per sample. Raises: UnavailableError, after which no more can be measured."""
        try:
            for process in self.processes:
                if process.stdin:
                    process.stdin.write(json.dumps(dict(configuration)) + "\n")
                    process.stdin.flush()
        except BrokenPipeError as error:
            raise self._lost(configuration) from error
        first = self.processes[0]
        answer = first.stdout.readline() if first.stdout else ""
        if not answer:
            raise self._lost(configuration)
        return float(answer)

    def _lost(self, configuration: Configuration) -> UnavailableError:
        said = self.log.read_text(errors="replace").strip()[-LOG_TAIL:]
        return UnavailableError(f"{dict(configuration)}: a rank ended, expected its seconds per sample: {said}")


@contextmanager
def started(seconds: float) -> Iterator[Ranks]:
    """Ranks that measure steps for about so many seconds each time; they end with the block."""
    with tempfile.TemporaryDirectory(prefix="crosswind-live-") as folder:
        log = Path(folder) / "log"
        processes = tuple(_start(Path(folder) / "meeting", rank, seconds, log) for rank in range(RANKS))
        try:
            yield Ranks(processes, log)
        finally:
            _end(processes)


def _start(meeting: Path, rank: int, seconds: float, log: Path) -> subprocess.Popen[str]:
    with log.open("a") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.tuning_live.rank", str(meeting), str(rank), str(seconds)],
            cwd=REPOSITORY,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,  # the scheduler may share a core between sessions first (sched(7), autogroup)
        )


def _end(processes: tuple[subprocess.Popen[str], ...]) -> None:
    for process in processes:
        if process.stdin:
            with suppress(BrokenPipeError):  # it has ended, and never read what it was sent
                process.stdin.close()
    for process in processes:
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
