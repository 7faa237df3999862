"""Several processes that open an old catalog at the same moment."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from crosswind.data.catalog.database import FIRST, HEAD, MIGRATIONS, open_database, sqlite_url

PROCESSES = 4
OPEN = """
import sys
from crosswind.data.catalog.database import open_database
print("ready", flush=True)
sys.stdin.readline()
open_database(sys.argv[1]).dispose()
print("open", flush=True)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a catalog of the first release."""
    is_sqlite = request.param == "sqlite"
    url = sqlite_url(tmp_path / "catalog.sqlite") if is_sqlite else str(request.getfixturevalue("postgres_url"))
    engine = create_engine(url if is_sqlite else url.replace("postgresql:", "postgresql+pg8000:"))
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, FIRST)
    engine.dispose()
    return url


def test_one_migrates_an_old_catalog_and_the_others_wait(old_url: str) -> None:
    command_line = [sys.executable, "-c", OPEN, old_url]
    pipe = subprocess.PIPE
    opening = [
        subprocess.Popen(command_line, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(PROCESSES)
    ]
    for process in opening:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in opening:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [(*process.communicate(timeout=60), process.returncode) for process in opening]
    assert outcomes == [("open\n", "", 0)] * PROCESSES
    engine = open_database(old_url)
    with engine.connect() as connection:
        assert connection.execute(text("select version_num from alembic_version")).scalars().all() == [HEAD]
    engine.dispose()


def test_a_file_without_a_log_is_opened_once_its_writer_is_done(tmp_path: Path) -> None:
    """SQLite refuses at once to turn the log on while somebody writes, whatever its patience."""
    path = tmp_path / "catalog.sqlite"
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("begin immediate")
    writer.execute("create table somebodys (number)")
    ending = threading.Timer(0.3, writer.commit)
    ending.start()
    engine = open_database(sqlite_url(path))
    with engine.connect() as connection:
        assert connection.execute(text("pragma journal_mode")).scalar() == "wal"
    ending.join()
    engine.dispose()
    writer.close()
