"""The demo's pages, served by a process of their own, so that reading them does not disturb measurements."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.faults import die_with_parent
from crosswind.settings import Settings

END_SECONDS = 20.0


@dataclass(frozen=True)
class Site:
    """A server of the demo's store, in a process of its own."""

    process: "subprocess.Popen[str]"
    port: int

    def url(self) -> str:
        """Return where the pages are, once the server listens. Raises: UnavailableError when it ended instead."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise UnavailableError(f"the pages are not served on port {self.port}: --port 0 takes a free one")
        url: str = json.loads(line)["url"]
        return url

    def wait(self) -> int:
        """Serve until stopped; return the exit code."""
        while True:
            try:
                return self.process.wait()
            except KeyboardInterrupt:  # from a terminal the server has it too, from elsewhere it has not
                self.process.terminate()


@contextmanager
def site(settings: Settings, port: int) -> Iterator[Site]:
    """Start `crosswind serve` over this store; it ends with the block."""
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--json", f"--port={port}"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment_of(settings),
        preexec_fn=die_with_parent,  # noqa: PLW1509
    ) as process:
        try:
            yield Site(process, port)
        finally:
            process.terminate()
            _end(process)


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the environment for a process of ours that works on the demo's store and on no other."""
    kept = {name: value for name, value in os.environ.items() if name not in {"CROSSWIND_DATABASE", "CROSSWIND_SERVER"}}
    return kept | {"CROSSWIND_HOME": str(settings.home), "CROSSWIND_SPOOL": str(settings.spool)}


def _end(process: "subprocess.Popen[str]") -> None:
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
