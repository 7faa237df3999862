"""A program's output through the relay, with the processes that pass it on and look for step lines in it."""

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import crosswind
from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.wrapper.relay import copy_size

LAST_LINES_SECONDS = 5.0
RELAY_SECONDS = 0.2
START = "import sys; sys.path.append(sys.argv.pop()); from crosswind.ingest.wrapper.{} import main; main()"
ROOT = str(Path(crosswind.__file__).parents[1])


@dataclass
class WatchedOutput:
    """The descriptors that the program writes to, and their reading processes."""

    ends: tuple[int | None, int | None]
    _over: int
    _drained: int
    _relay: "subprocess.Popen[bytes]"
    _matcher: "subprocess.Popen[bytes]"
    _theirs: set[int] = field(default_factory=set)

    def let_go(self) -> None:
        """Close our copies of the program's ends, which would keep them open after it."""
        while self._theirs:
            os.close(self._theirs.pop())

    def drain(self) -> None:
        """Return when all output is passed on, however slow its reader is, and searched for step lines."""
        os.close(self._over)
        self._over = -1
        while os.read(self._drained, 1):
            pass
        with suppress(subprocess.TimeoutExpired):
            self._matcher.wait(LAST_LINES_SECONDS)

    def give_up(self, _number: int) -> None:
        """Stop passing output on: a signal while it drains, which without us would have ended the writing program."""
        self._relay.kill()

    def close(self) -> None:
        """Close everything; the relay stays while a child of the program still writes."""
        self.let_go()
        for fd in {self._over, self._drained} - {-1}:
            os.close(fd)
        if self._matcher.poll() is None:
            self._matcher.kill()
        self._matcher.wait()
        try:
            self._relay.wait(RELAY_SECONDS)
        except subprocess.TimeoutExpired:
            self._relay.returncode = 0  # nobody waits for it any more


@contextmanager
def watched_output(targets: Sequence[int], lines: tuple[Path, str, str]) -> Iterator[WatchedOutput]:
    """Pass output to `targets` through the relay while a program runs; `lines` are the matcher's arguments.

    One way serves targets that are one file, so that their output stays in order.
    Raises: UnavailableError when the relay does not start.
    """
    kinds = [_identity(fd) for fd in targets]
    files = {kind: os.dup(fd) for kind, fd in zip(kinds, targets, strict=True) if kind}  # 1 and 2 mean others there
    ways = {kind: _way(fd) for kind, fd in files.items()}
    (over_read, over), (drained, drained_write), (copy_read, copy) = os.pipe(), os.pipe(), os.pipe()
    passed = [over_read, drained_write, copy]
    for kind, target in files.items():
        passed += [ways[kind][0], target]
    try:
        with _without_signals():
            relay = _start("relay", passed, words=[str(fd) for fd in passed])
            matcher = _start("line_matcher", [], words=[str(word) for word in lines], stdin=copy_read)
    finally:
        for fd in (copy_read, *passed):
            os.close(fd)
    ends = [ways[kind][1] if kind else None for kind in kinds]
    output = WatchedOutput((ends[0], ends[1]), over, drained, relay, matcher, {end for _, end in ways.values()})
    try:
        if not os.read(drained, 1):  # lines that wait for a relay to begin would all seem to come at once
            raise UnavailableError("run: the process that passes the output on did not start")
        yield output
    finally:
        output.close()


def _identity(fd: int) -> tuple[int, int, int] | None:
    """Return the identity of an open file; None if there is none."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


def _way(target: int) -> tuple[int, int]:
    """Return the relay's end and the program's: of a terminal if the target is one, else of a pipe."""
    if not os.isatty(target):
        return os.pipe()
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(theirs)
    mode[1] &= ~termios.OPOST  # the real terminal does that
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    copy_size(target, theirs)
    return ours, theirs


def _start(
    module: str, fds: Sequence[int], *, words: Sequence[str], stdin: int = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """Start a process of ours that imports nothing from the current directory."""
    command = [sys.executable, "-I", "-c", START.format(module), *words, ROOT]
    stderr = subprocess.DEVNULL if fds else None
    return subprocess.Popen(command, pass_fds=fds, stdin=stdin, stdout=subprocess.DEVNULL, stderr=stderr)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Block the signals that a terminal or a batch system sends to all, for what starts here: it ends by itself."""
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK,
        (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
