"""Agents of the lab: one in every host, alive through all runs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.hosts import Host

INTERVAL_SECONDS = 0.2
SEGMENT_SECONDS = 60.0
START_SECONDS = 30.0
END_SECONDS = 10.0
ENDS_WITH_LAB = ("setpriv", "--pdeathsig", "TERM")
UNINTERESTING = ("filesystem", "frequency", "perf", "hwmon", "thermal", "rapl", "ethtool", "nfs", "lustre")


@dataclass(frozen=True)
class AgentPost:
    """One host's agent: its node name, and the folder of its spool and of its ranks' announcements."""

    host: Host
    node: str
    spool: Path
    folder: Path  # for its settings and log

    def command(self) -> list[str]:
        """Return the agent's command line, inside its host."""
        words = [sys.executable, "-m", "crosswind.cli.main", "agent", "--config", str(self.folder / "agent.toml")]
        return self.host.command([*ENDS_WITH_LAB, *words])

    def settings(self) -> str:
        """Return the agent's settings, as TOML."""
        off = "".join(f"\n[sources.{name}]\nenabled = false\n" for name in UNINTERESTING)
        return (
            f'node = "{self.node}"\nspool = "{self.spool}"\nrun_directory = "{self.spool}"\n'
            f"interval_seconds = {INTERVAL_SECONDS}\nsegment_seconds = {SEGMENT_SECONDS}\n{off}"
        )


@contextmanager
def agents(posts: Sequence[AgentPost], environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Run an agent at each post, from its first sweep to its last. Raises: UnavailableError."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for post in posts:
            processes.append(_started(post, environment))
        for post, process in zip(posts, processes, strict=True):
            _await_first_sweep(post, process)
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            _end(process)


def _started(post: AgentPost, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    post.folder.mkdir(parents=True, exist_ok=True)
    announcements = post.spool / "ranks"
    announcements.mkdir(parents=True, exist_ok=True)
    announcements.chmod(0o1777)  # ranks of other users announce themselves here, too
    (post.folder / "agent.toml").write_text(post.settings(), "utf-8")
    with (post.folder / "agent.log").open("ab") as log:
        return subprocess.Popen(
            post.command(),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _await_first_sweep(post: AgentPost, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while not any(post.spool.glob("*.open")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise UnavailableError(f"{post.node}: its agent does not sample, see {post.folder / 'agent.log'}")
        time.sleep(0.05)


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
