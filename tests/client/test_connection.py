"""The right client: of a server that is named, else of the store of this machine."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import crosswind
from crosswind.client.connection import SERVER, connect
from crosswind.client.local import Local
from crosswind.client.protocol import Client
from crosswind.client.remote import Remote
from crosswind.data.schema.errors import NotFoundError, UnavailableError

CODE = """
import sys, crosswind
client = crosswind.connect("http://127.0.0.1:9")
heavy = {"numpy", "pandas", "pyarrow", "duckdb", "sqlalchemy", "sklearn", "pydantic", "fastapi"}
print(type(client).__name__, sorted(heavy & sys.modules.keys()))
"""


def test_without_a_server_the_store_here_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVER, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "store"))
    with crosswind.connect() as client:
        assert isinstance(client, Local)
        with pytest.raises(NotFoundError, match="'r'"):
            client.explain("r")


def test_a_server_is_asked_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER, "http://127.0.0.1:9")
    with connect() as client:
        assert isinstance(client, Remote)
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:9 does not answer"):
            client.explain("r")
    assert isinstance(connect("http://127.0.0.1:10"), Remote)


def test_a_remote_client_needs_the_standard_library_alone() -> None:
    said = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "Remote []"


@pytest.mark.parametrize("kind", [Local, Remote])
def test_both_clients_take_what_the_protocol_says(kind: type) -> None:
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if name.startswith("_"):
            continue
        wanted = inspect.signature(method).parameters
        offered = inspect.signature(getattr(kind, name)).parameters
        assert {name: offered[name].default for name in wanted} == {n: p.default for n, p in wanted.items()}
