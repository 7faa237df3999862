"""The end of a program whose starter was killed, even by a signal that no process can handle.

A small process with a session of its own reads a pipe whose other end only the starter has. However the starter dies,
the kernel closes that end; then every process of the run on this node gets SIGTERM, and SIGKILL after some seconds.
They are found by the run's id in their environment, whatever has become of their parents: a parent-death signal
(prctl(2), PR_SET_PDEATHSIG) would reach the program alone, not what a shell, torchrun or mpirun has started.
This file is run as a script, by the standard library alone.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROCESSES = Path("/proc")
VARIABLE = "CROSSWIND_RUN_ID"
DONE = b"."
LOOK_SECONDS = 0.1
STUCK_SECONDS = 60.0  # after which one in the kernel's hands is left there
STARTING_SECONDS = 0.5  # in which a program that was just being started gets its environment


@contextmanager
def ended_with_us(run_id: str, grace_seconds: float | None) -> Iterator[None]:
    """End the run's processes where this one does not live to the end of the block, or leaves it by an exception.

    They have so many seconds after SIGTERM; with None they go on.
    """
    if grace_seconds is None or not (PROCESSES / "self" / "environ").exists():  # no Linux
        yield
        return
    command = [sys.executable, "-I", "-S", str(Path(__file__).absolute()), run_id, str(grace_seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        yield
        with suppress(OSError):  # somebody killed it
            process.communicate(DONE)


def main(run_id: str, grace_seconds: float) -> None:
    """Wait until the starter says that all is done, or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)  # a job's end is announced to all of its processes
    if sys.stdin.buffer.read() != DONE:
        end(run_id, grace_seconds)


def end(run_id: str, grace_seconds: float) -> None:
    """End the run's processes; those that come meanwhile, too."""
    asked: set[int] = set()
    begin = time.monotonic()
    while (alive := processes_of(run_id)) or time.monotonic() < begin + STARTING_SECONDS:
        seconds = time.monotonic() - begin
        is_overdue = seconds >= grace_seconds
        if seconds > grace_seconds + STUCK_SECONDS:
            break
        for pid in alive if is_overdue else alive - asked:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL if is_overdue else signal.SIGTERM)
        asked |= alive
        time.sleep(LOOK_SECONDS)
    if asked:
        sys.stderr.write(
            f"crosswind: the process that started run {run_id} was killed: the run's processes are ended\n"
        )


def processes_of(run_id: str) -> set[int]:
    """Return the processes of this node that have the run's id in their environment; zombies have none."""
    return {int(path.name) for path in PROCESSES.iterdir() if path.name.isdigit() and _is_of(path, run_id)}


def _is_of(process: Path, run_id: str) -> bool:
    try:
        words = (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it is gone, or somebody else's
        return False
    return f"{VARIABLE}={run_id}".encode() in words and int(process.name) != os.getpid()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
