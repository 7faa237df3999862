"""A catalog that is away, starting, full or damaged."""

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError, ProgrammingError
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.cli.main import main
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import DamagedCatalogError, _engine, open_database, sqlite_url
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


def refusal(state: str, text: str) -> bytes:
    """PostgreSQL's message ErrorResponse. Source: its manual, 55.7 message formats."""
    fields = b"SFATAL\0VFATAL\0" + b"C" + state.encode() + b"\0M" + text.encode() + b"\0\0"
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields


@pytest.fixture(params=["57P03 the database system is starting up", "53300 sorry, too many clients already"])
def refusing(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a PostgreSQL that refuses every connection with this state."""
    state, _, text = request.param.partition(" ")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    if connection.recv(1000) == SSL_REQUEST:
                        connection.sendall(b"N")
                        connection.recv(1000)
                    connection.sendall(refusal(state, text))
                    connection.recv(1000)

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        yield f"postgresql://crosswind@127.0.0.1:{listening.getsockname()[1]}/crosswind"


def test_a_postgresql_that_starts_or_is_full_is_away(refusing: str, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"does not open: .*(starting up|too many clients)"):
        open_database(refusing)
    engine = _engine(refusing)
    with pytest.raises(OperationalError), engine.connect():
        pass
    client = own_client(create_app(Store(tmp_path, Catalog(engine))), base_url="http://localhost")
    for path in ("/readyz", "/v1/runs", "/metrics"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.json()["detail"] == "the catalog does not answer"


def test_a_mistake_in_a_query_is_not_taken_for_that(postgres_url: str) -> None:
    engine = _engine(postgres_url.replace("+pg8000", ""))
    with pytest.raises(ProgrammingError), engine.connect() as connection:
        connection.exec_driver_sql("select nothing from nowhere")
    engine.dispose()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "home") as store, store.catalog.write() as session:
        for number in range(200):
            session.runs.merge(Run(f"r{number}", "gpt", "lab", RunState.COMPLETED))
    return tmp_path / "home"


SAID = "catalog .*catalog.sqlite is damaged .*put back a backup or what `sqlite3 .* .recover"


def test_a_file_that_is_no_database_is_refused_with_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in home.glob("catalog.sqlite-*"):
        file.unlink()
    (home / "catalog.sqlite").write_bytes(b"garbage " * 1000)
    with pytest.raises(DamagedCatalogError, match=SAID):
        open_database(sqlite_url(home / "catalog.sqlite"))
    monkeypatch.setenv("CROSSWIND_HOME", str(home))
    for name in ("CROSSWIND_DATABASE", "CROSSWIND_SERVER"):
        monkeypatch.delenv(name, raising=False)
    for verb in (["runs"], ["serve", "--port", "0"]):
        assert main(verb) == 75
        said = capsys.readouterr().err
        assert "is damaged (file is not a database): stop what uses it, move it aside" in said


def test_a_server_whose_database_gets_damaged_says_so_in_its_log_alone(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Store.open(home) as store:
        client = own_client(create_app(store), base_url="http://localhost")
        assert client.get("/v1/runs").status_code == 200
        store.close()
        path = home / "catalog.sqlite"
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
        for file in home.glob("catalog.sqlite-*"):
            file.unlink()
        answer = client.get("/v1/runs")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.json()["detail"] == "the catalog is damaged; the server's log says what to do"
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
    assert "put back a backup" in caplog.text
    shutil.rmtree(home)
