"""A PostgreSQL server, for the time of a test."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import lack

OPTIONS = "-c fsync=off -c listen_addresses=127.0.0.1"


@dataclass(frozen=True)
class Postgres:
    """A server of its own in a folder; `url` is without a database."""

    program: Path
    folder: Path
    user: str
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}@127.0.0.1:{self.port}"

    def run(self, *arguments: str) -> None:
        """Have pg_ctl do something."""
        command = [
            str(self.program),
            "--pgdata",
            str(self.folder / "data"),
            "--silent",
            "--wait",
            "--timeout",
            "300",
            *arguments,
        ]
        subprocess.run(command, check=True, user=self.user, cwd=self.folder, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        """Start it, at the same port as before."""
        options = f"{OPTIONS} -c port={self.port} -c unix_socket_directories={self.folder}"
        self.run("start", "--log", str(self.folder / "log"), "--options", options)

    def stop(self) -> None:
        """End it as a crash does: connections break, and the next start recovers."""
        self.run("stop", "--mode", "immediate")


@contextmanager
def postgres(port: int) -> Iterator[Postgres]:
    """Yield a new server that listens at this port."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not programs:
        lack("postgresql", "no program pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="crosswind-postgres-"))
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name  # it refuses to run as root
    shutil.chown(folder, user)
    server = Postgres(programs[-1], folder, user, port)
    server.run("initdb", "--options", f"--auth=trust --username={user} --encoding=UTF8 --locale=C")
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
