"""Connections to PostgreSQL, which are encrypted where the server offers that."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import InterfaceError, ProgrammingError
from tests.needs import program
from tests.waiting import until

from crosswind.data.catalog.database import open_database

CERTIFICATE = "req -new -x509 -days 2 -nodes -newkey rsa:2048 -subj /CN=localhost -keyout server.key -out server.crt"


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server, by a connection of its administrator."""

    connection: Connection

    def say(self, statement: str) -> str:
        answer = self.connection.execute(text(statement))
        return str(answer.scalar()) if answer.returns_rows else ""

    def set(self, name: str, value: str) -> None:
        self.say(f"alter system set {name} = '{value}'")
        self.say("select pg_reload_conf()")
        until(lambda: self.say(f"show {name}") == value)

    def certify(self, folder: Path) -> None:
        """Give it a certificate that nobody knows."""
        program("openssl", "openssl")
        subprocess.run(["openssl", *CERTIFICATE.split()], cwd=folder, check=True, capture_output=True)
        data = Path(self.say("show data_directory"))
        for name in ("server.key", "server.crt"):
            shutil.copy(folder / name, data)
            shutil.chown(data / name, data.owner())
            (data / name).chmod(0o600)


@pytest.fixture
def server(postgres_url: str, tmp_path: Path) -> Iterator[Server]:
    """A server that has a certificate and offers no encryption yet."""
    url = postgres_url.replace("postgresql:", "postgresql+pg8000:")
    engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args={"ssl_context": False})
    with engine.connect() as connection:
        made = Server(connection)
        made.certify(tmp_path)
        yield made
        made.set("ssl", "off")
    engine.dispose()


@pytest.fixture
def opened(postgres_url: str) -> Iterator[Engine]:
    engine = open_database(postgres_url)
    yield engine
    engine.dispose()


def is_encrypted(engine: Engine) -> bool:
    engine.dispose()
    with engine.connect() as connection:
        return bool(connection.execute(text("select ssl from pg_stat_ssl where pid = pg_backend_pid()")).scalar())


def is_refused(engine: Engine) -> bool:
    engine.dispose()
    try:
        engine.connect().close()
    except (ProgrammingError, InterfaceError) as error:
        return "no encryption" in str(error)
    return False


def test_it_is_encrypted_where_the_server_offers_that(opened: Engine, server: Server, postgres_url: str) -> None:
    assert not is_encrypted(opened)
    server.set("ssl", "on")
    another = open_database(postgres_url)
    assert is_encrypted(another)
    another.dispose()


def test_a_server_that_comes_to_insist_on_it_is_asked_again(opened: Engine, server: Server) -> None:
    path = Path(server.say("show hba_file"))
    before = path.read_text()
    server.set("ssl", "on")
    try:
        path.write_text("hostssl all all 127.0.0.1/32 trust\n")
        server.say("select pg_reload_conf()")
        until(lambda: is_refused(opened))
        assert is_encrypted(opened)
    finally:
        path.write_text(before)
        server.say("select pg_reload_conf()")
