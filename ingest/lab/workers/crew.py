"""The crew of warm workers, one for every host and rank: started once, given orders, restarted when they die."""

import os
import pwd
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.workers.order import READY, Order, read_reply

ENDS_WITH_LAB = ("setpriv", "--pdeathsig", "KILL")
Place = tuple[int, int]  # a host, and the number of the worker there
START_SECONDS = 120.0  # importing torch, several times at once


class WorkerLostError(UnavailableError):
    """A worker died, or did not end in time."""


@dataclass(frozen=True)
class Post:
    """The place of a worker, with its folders and addresses."""

    host: Host
    slot: int  # number on the host
    node: str
    spool: Path
    run_directory: Path  # of the host's agent
    conditions: Path
    scratch: Path
    log: Path
    user: str | None = None

    @property
    def place(self) -> Place:
        """Return the worker's place in its crew, by which it is named."""
        return self.host.index, self.slot

    def command(self) -> list[str]:
        """Return the worker's command line, inside its host."""
        words = [*ENDS_WITH_LAB, *(as_user(self.user) if self.user else ())]
        words += [sys.executable, "-m", "crosswind.ingest.lab.workers.worker", str(self.conditions), str(self.scratch)]
        return self.host.command(words)

    def environment(self, system: str) -> dict[str, str]:
        """Return the environment variables for the worker's probe and gloo."""
        return {
            **os.environ,
            "CROSSWIND_SPOOL": str(self.spool),
            "CROSSWIND_RUN_DIRECTORY": str(self.run_directory),
            "CROSSWIND_NODE": self.node,
            "CROSSWIND_SYSTEM": system,
            "GLOO_SOCKET_IFNAME": self.host.device,
            "OMP_NUM_THREADS": "1",
        }


def as_user(name: str) -> list[str]:
    """Return words for `setpriv` that start a program as another user who may read this Python's files."""
    account = pwd.getpwnam(name)
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *may_read]


class Worker:
    """One living process."""

    def __init__(self, post: Post, system: str) -> None:
        self.post = post
        self._unread = b""
        with post.log.open("ab") as log:
            self._process = subprocess.Popen(
                post.command(),
                env=post.environment(system),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,  # ranks of one session may share a core's time first (sched(7), autogroup)
            )
        self.pid = self._process.pid

    def fileno(self) -> int:
        """Return the descriptor of its answers."""
        return self._process.stdout.fileno() if self._process.stdout else -1

    def send(self, order: Order) -> None:
        """Send it an order. Raises: WorkerLostError."""
        try:
            if self._process.stdin:
                self._process.stdin.write(order.line())
        except OSError as error:
            raise WorkerLostError(f"{self.post.node}: worker {self.pid} takes no order, see {self.post.log}") from error

    def answers(self) -> list[Mapping[str, object]]:
        """Return its answers since the last call. Raises: WorkerLostError when it is dead."""
        content = os.read(self.fileno(), 1 << 16)
        if not content:
            raise WorkerLostError(f"{self.post.node}: worker {self.pid} died, see {self.post.log}")
        *lines, self._unread = (self._unread + content).split(b"\n")
        return [read_reply(line) for line in lines]

    def end(self) -> None:
        """Kill it, stopped or not."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()


class Crew:
    """The workers at their posts, started when they are first needed."""

    def __init__(self, posts: Mapping[Place, Post], system: str) -> None:
        self._posts = posts
        self._system = system
        self._workers: dict[Place, Worker] = {}

    def ready(self, places: Sequence[Place]) -> list[Worker]:
        """Return the workers of these places, waiting for orders. Raises: WorkerLostError."""
        fresh = [place for place in places if place not in self._workers]
        for place in fresh:
            self._workers[place] = Worker(self._posts[place], self._system)
        until_ready([self._workers[place] for place in fresh], START_SECONDS)
        return [self._workers[place] for place in places]

    def dismiss(self) -> None:
        """End all; the next run starts new ones."""
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()


def until_ready(workers: Sequence[Worker], limit_seconds: float) -> None:
    """Wait for workers that were just started. Raises: WorkerLostError."""
    deadline = time.monotonic() + limit_seconds
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker, selectors.EVENT_READ, worker)
        waiting = set(workers)
        while waiting:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                nodes = ", ".join(sorted(worker.post.node for worker in waiting))
                raise WorkerLostError(f"no worker after {limit_seconds:.0f} s on {nodes}, see {workers[0].post.log}")
            for key, _ in ready:
                if any(answer["event"] == READY for answer in key.data.answers()):
                    waiting.discard(key.data)
