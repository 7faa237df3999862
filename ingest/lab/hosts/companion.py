"""Companions: processes of the lab next to a run, which report their start, and end on request or with the lab.

The death signal of prctl(2) follows the thread that started a process, and a lab may start them from threads that end
sooner; so each watches the lab's process itself.
"""

import importlib
import json
import os
import pwd
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from crosswind.data.schema.errors import UnavailableError

START = "from crosswind.ingest.lab.hosts.companion import main; main()"
READY = b"ready\n"
READY_SECONDS = 60.0  # a busy machine may take seconds to start Python
STDIN = 0

Program = Callable[..., None]
Within = Callable[[Sequence[str]], list[str]]


class EndedEarlyError(UnavailableError):
    """Processes ended before the request: their work is over, but was not complete."""


@dataclass(frozen=True)
class Companion:
    """A started process that has reported to be at work."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self._close()

    def release(self) -> bytes:
        """Let it end by itself. Return its last words."""
        self.stdin.close()
        words = self.stdout.read()
        self._close()
        return words

    def _close(self) -> None:
        self.process.wait()
        self.stdin.close()
        self.stdout.close()


def start(program: Program, *arguments: object, within: Within = list) -> Companion:
    """Run a function of a module in a process of its own. Return it when it is at work. Raises: UnavailableError."""
    [companion] = start_all(program, [arguments], within=within)
    return companion


def start_all(
    program: Program, argument_lists: Sequence[Sequence[object]], *, within: Within = list
) -> list[Companion]:
    """Start one process for each list of arguments; all of them are at work, or none. Raises: UnavailableError."""
    companions: list[Companion] = []
    try:
        for arguments in argument_lists:
            companions.append(_begin(program, arguments, within))
        for companion in companions:
            _wait_until_ready(companion, program)
    except BaseException:
        with suppress(UnavailableError):
            kill_all(companions)
        raise
    return companions


def kill_all(companions: Sequence[Companion]) -> None:
    """Kill them. Raises: EndedEarlyError when some had ended before."""
    ended = [companion.process.pid for companion in companions if companion.process.poll() is not None]
    for companion in companions:
        companion.process.kill()
    for companion in companions:
        companion.kill()
    if ended:
        raise EndedEarlyError(f"{len(ended)} of {len(companions)} processes ended before the request: {ended}")


def _begin(program: Program, arguments: Sequence[object], within: Within) -> Companion:
    command = [sys.executable, "-P", "-c", START, str(os.getpid()), program.__module__, program.__name__]
    process = subprocess.Popen(
        within([*command, json.dumps(list(arguments))]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,  # the scheduler may share a core between sessions first (sched(7), autogroup)
    )
    if process.stdin is None or process.stdout is None:
        raise UnavailableError(f"{program.__name__}: no pipes to it")
    return Companion(process, process.stdin, process.stdout)


def _wait_until_ready(companion: Companion, program: Program) -> None:
    can_read, _, _ = select.select([companion.stdout], [], [], READY_SECONDS)
    said = companion.stdout.read(len(READY)) if can_read else b"nothing in time"
    if said != READY:
        raise UnavailableError(f"{program.__module__}: {program.__name__} said {said!r}, expected {READY!r}")


# The rest of this file runs in the started process.


def main() -> None:
    """Run the function that the command line names."""
    _lab, module, name, arguments = sys.argv[1:]
    getattr(importlib.import_module(module), name)(*json.loads(arguments))


def leash() -> list[int]:
    """Return descriptors of which one becomes readable when this process is to end; exit if the lab has died."""
    lab = int(sys.argv[1])
    descriptor = os.pidfd_open(lab)
    if os.getppid() != lab:  # it has died, and a later process has its number
        sys.exit(f"process {lab} is no longer there")
    return [STDIN, descriptor]


def end_with_lab() -> None:
    """End this process from now on when it is released or the lab dies."""
    threading.Thread(target=_watch, args=[leash()], daemon=True).start()


def _watch(descriptors: list[int]) -> None:
    select.select(descriptors, [], [])
    os._exit(0)


def become_nobody() -> None:
    """Continue as another user, like the programs of neighbours."""
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def say_ready() -> None:
    """Report to the lab that the work has begun."""
    os.write(1, READY)
