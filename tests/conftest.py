import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import create_engine, text

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database, sqlite_url

# The same examples in every run, so that a change alone turns a test red; --hypothesis-profile=search looks for others.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("steady")

OPTIONS = "-c fsync=off -c listen_addresses=127.0.0.1"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL, without a database, of a PostgreSQL server that lives as long as the tests."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not programs:
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse("no PostgreSQL server here: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="crosswind-postgres-"))
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name  # it refuses to run as root
    shutil.chown(folder, user)
    port = free_port()
    pg_ctl = [str(programs[-1]), "--pgdata", str(folder / "data"), "--silent", "--wait"]
    options = f"{OPTIONS} -c port={port} -c unix_socket_directories={folder}"

    def run(*arguments: str) -> None:
        subprocess.run([*pg_ctl, *arguments], check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run("initdb", "--options", f"--auth=trust --username={user} --encoding=UTF8 --locale=C")
    run("start", "--log", str(folder / "log"), "--options", options)
    try:
        yield f"postgresql://{user}@127.0.0.1:{port}"
    finally:
        run("stop", "--mode", "immediate")
        shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    name = f"test_{uuid.uuid4().hex}"
    url = f"{postgres_server}/postgres".replace("postgresql:", "postgresql+pg8000:")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"create database {name}"))
        yield f"{postgres_server}/{name}"
        connection.execute(text(f"drop database {name} with (force)"))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog, once in each database."""
    is_sqlite = request.param == "sqlite"
    url = sqlite_url(tmp_path / "catalog.sqlite") if is_sqlite else request.getfixturevalue("postgres_url")
    opened = Catalog(open_database(url))
    yield opened
    opened.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
