"""Processes that end with the one that started them."""

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS, END_SECONDS = 120.0, 20.0
OURS = "CROSSWIND_"


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(  # noqa: PLR0913 - what a program needs to run, by name
    command: Sequence[str],
    log: Path,
    *,
    is_ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
    ended_by: signal.Signals = signal.SIGTERM,
    user: str | None = None,
) -> Iterator[int]:
    """Run a program from when it is ready until the end of the context; yields its pid.

    It has a session of its own, so that Ctrl-C in a terminal reaches this process alone, and ends with this process
    also where that is killed. `user` is another user to run as, where this is root.
    Raises: SystemExit when it ends before it is ready, or is not in time.
    """
    words = ["setpriv", "--pdeathsig", "TERM", *_as_user(user), "--", *command]
    with log.open("ab") as lines:
        process = subprocess.Popen(
            words, stdout=lines, stderr=lines, env=_environment(environment or {}), start_new_session=True, cwd="/"
        )
    try:
        _await(process, is_ready, log)
        yield process.pid
    finally:
        process.send_signal(ended_by)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _as_user(user: str | None) -> list[str]:
    if user is None or os.geteuid() != 0:
        return []
    entry = pwd.getpwnam(user)
    return [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith(OURS)} | dict(given)


def _await(process: "subprocess.Popen[bytes]", is_ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_ready():
        if process.poll() is not None:
            raise SystemExit(f"{process.args} ended with {process.returncode}: {log.read_text()[-2000:]}")
        if time.monotonic() > deadline:
            raise SystemExit(f"{process.args} was not ready in {START_SECONDS:g} s: see {log}")
        time.sleep(0.1)


def answers(port: int) -> bool:
    """Return whether somebody listens on a port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
