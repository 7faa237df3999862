"""The training program `train.py` in forks of one process that has imported PyTorch, which takes most of a short run.

`python -m crosswind.ingest.lab.warm` takes the options of `train.py`. In the environment of a `Trainer` it hands them
over to its process, and ends as the fork does that trains with them; elsewhere it is `train.py`.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.ingest.lab.faults import die_with_parent
from crosswind.ingest.lab.forked import exit_after

PLACE = "CROSSWIND_LAB_TRAINER"
SERVE = "from crosswind.ingest.lab.warm import serve; serve()"
PIECE_BYTES = 65_536
TICKS = os.sysconf("SC_CLK_TCK")
CHILDREN_USER, CHILDREN_SYSTEM = 13, 14  # after the name in /proc/PID/stat, proc_pid_stat(5)


@dataclass(frozen=True)
class Asked:
    """A program that is to be run: the options of `train.py`, and what it inherits."""

    words: list[str]
    environment: dict[str, str]
    folder: str


@dataclass(frozen=True)
class Trainer:
    """The process, and the socket at which it is asked."""

    process: int
    place: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return what a program needs in its environment to be trained here."""
        return {PLACE: str(self.place)}

    def cpu_seconds(self) -> float:
        """Return the CPU time of the forks that have ended, with that of their children."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[CHILDREN_USER]) + int(fields[CHILDREN_SYSTEM])) / TICKS


@contextmanager
def trainer() -> Iterator[Trainer]:
    """Start the process, which ends with the block; meanwhile it imports what training needs."""
    with tempfile.TemporaryDirectory(prefix="crosswind-") as folder:
        place = Path(folder, "trainer")
        with _served(place) as process:
            try:
                yield Trainer(process.pid, place)
            finally:
                process.kill()


def _served(place: Path) -> "subprocess.Popen[bytes]":
    """Start the process at a socket that is its alone: it is refused once the process has ended."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        command = [sys.executable, "-c", SERVE]
        return subprocess.Popen(command, stdin=listening.fileno(), preexec_fn=die_with_parent)  # noqa: PLW1509


def serve() -> None:
    """Train with the options of everybody who connects to the socket at standard input, one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent
    from crosswind.ingest.lab import train  # noqa: F401, PLC0415 - heavy: what all forks share

    gc.collect()
    gc.freeze()  # a garbage collection in a fork would copy PyTorch's memory
    with socket.socket(fileno=os.dup(0)) as listening:
        while True:
            line, _ = listening.accept()
            with line, suppress(OSError):  # of somebody who left
                line.sendall(str(_exit_code_of(*_received(line))).encode())


def _received(line: socket.socket) -> tuple[bytes, list[int]]:
    asked, files, _, _ = socket.recv_fds(line, PIECE_BYTES, 2)
    while piece := line.recv(PIECE_BYTES):
        asked += piece
    return asked, files


def _exit_code_of(asked: bytes, files: list[int]) -> int:
    fork = os.fork()
    if fork == 0:
        exit_after(lambda: _train(Asked(**json.loads(asked)), files))
    for file in files:
        os.close(file)
    return abs(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]))


def _train(asked: Asked, files: list[int]) -> None:
    """Be the program that was asked for, in this fork."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(asked.environment)
    os.chdir(asked.folder)
    sys.argv = ["train.py", *asked.words]
    _main()


def _main() -> None:
    from crosswind.ingest.lab.train import main  # noqa: PLC0415 - heavy: not where the work is handed over

    main()


def handed_over(place: str, words: list[str]) -> int:
    """Have the process at this socket train with these words. Return the exit code, 1 if it ended meanwhile."""
    asked = Asked(words, dict(os.environ), str(Path.cwd()))
    content, answer = json.dumps(asdict(asked)).encode(), b""
    with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
        line.connect(place)
        sent = socket.send_fds(line, [content], [1, 2])
        line.sendall(content[sent:])
        line.shutdown(socket.SHUT_WR)
        answer = line.recv(PIECE_BYTES)
    if not answer:
        sys.stderr.write("the process that trains has ended\n")
    return int(answer or 1)


if __name__ == "__main__":
    if place := os.environ.get(PLACE):
        sys.exit(handed_over(place, sys.argv[1:]))
    _main()
