import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from crosswind.api.server import listen, serve, url_of
from crosswind.api.settings import ServerSettings
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store

SERVE = """
import os
import sys
from pathlib import Path
from crosswind.api.server import serve
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    serve(store, ServerSettings(port=0), ready=lambda url: print(url, flush=True))
print("ended", flush=True)
os._exit(0)  # as the verb does where a training goes on
"""
STUDY = {"name": "n", "space": {"batch": {"kind": "int", "low": 1, "high": 64}}, "objective": "o"}


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A real server over a store, and where it answers."""
    command = [sys.executable, "-c", SERVE, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(scope="module")
def url(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield where one server answers for all tests of this file; in the end Ctrl-C stops it in good order."""
    home = shutil.copytree(filled, tmp_path_factory.mktemp("served") / "store")
    with serving(Path(home)) as (url, process):
        yield url
        assert ended(process, signal.SIGINT)


def ended(process: "subprocess.Popen[str]", number: signal.Signals) -> bool:
    process.send_signal(number)
    assert process.stdout
    return process.stdout.read() == "ended\n" and process.wait(timeout=10) == 0


def created(url: str, name: str) -> str:
    study: str = httpx2.post(f"{url}v1/studies", json=STUDY | {"name": name}, timeout=30).json()["study_id"]
    return study


@pytest.mark.thorough
def test_the_whole_way_over_a_real_server(url: str) -> None:
    with httpx2.Client(base_url=url, timeout=30) as client:
        assert client.get("/readyz").json()["status"] == "ready"
        assert len(client.get("/v1/runs").json()["runs"]) == 9
        study = created(url, "whole way")
        [trial] = client.post(f"/v1/studies/{study}/trials:suggest", json={"owner": "a"}).json()["trials"]
        done = client.post(f"/v1/studies/{study}/trials/{trial['trial_id']}:complete", json={"objective": 2.5})
        assert done.json()["state"] == "done"
        assert client.post("/v1/studies", content=b"[" * 10_000).status_code == 415
        assert client.get("/v1/runs/%00").status_code == 422
        assert 'route="/v1/studies/{study_id}/trials:suggest"' in client.get("/metrics").text


def test_many_askers_over_http_get_distinct_trials(url: str) -> None:
    study, got = created(url, "many"), []

    def ask(name: str) -> None:
        body = {"owner": name, "count": 3}
        answer = httpx2.post(f"{url}v1/studies/{study}/trials:suggest", json=body, timeout=60)
        got.extend(trial["trial_id"] for trial in answer.json()["trials"])

    threads = [threading.Thread(target=ask, args=(f"asker {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(got) == len(set(got)) == 18


@pytest.mark.thorough
def test_a_server_killed_at_once_loses_no_answered_trial(store: Store) -> None:
    with serving(store.home) as (url, process):
        study = created(url, "killed")
        [trial] = httpx2.post(f"{url}v1/studies/{study}/trials:suggest", json={"owner": "a"}).json()["trials"]
        process.kill()
        process.wait(timeout=10)
    with serving(store.home) as (url, process):
        complete = f"{url}v1/studies/{study}/trials/{trial['trial_id']}:complete"
        answer = httpx2.post(complete, json={"objective": 1.0, "owner": "a"})
        assert (answer.status_code, answer.json()["configuration"]) == (200, trial["configuration"])
        assert ended(process, signal.SIGTERM)


def test_a_body_beyond_the_limit_is_answered_and_one_that_never_ends_cut_off(url: str) -> None:
    answer = httpx2.post(f"{url}v1/studies", content=b" " * 2_000_000, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    address = ("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert sent_until_cut_off(connection) < 100
    assert httpx2.get(f"{url}healthz").status_code == 200


def sent_until_cut_off(connection: socket.socket) -> float:
    """Return how many MiB the other side let us send."""
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for number in range(10_000):
        try:
            connection.sendall(chunk)
        except OSError:  # reset or broken pipe, as the kernel pleases
            return number / 16
    return float("inf")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_asked_to_end_before_it_has_begun_to_listen_for_signals_ends(
    store: Store, number: signal.Signals
) -> None:
    said: list[str] = []

    def ready(url: str) -> None:
        said.append(url)
        signal.raise_signal(number)

    serve(store, ServerSettings(port=0), ready=ready)
    assert len(said) == 1
    assert signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}


def test_a_port_that_is_taken_is_named() -> None:
    with listen(ServerSettings(port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"cannot listen on 127.0.0.1:{port}, .*choose another port"):
            listen(ServerSettings(port=port))


def test_a_host_that_is_not_ours_is_named() -> None:
    settings = ServerSettings(host="203.0.113.7", token="x" * 16)
    with pytest.raises(UnavailableError, match=r"cannot listen on 203.0.113.7:8000"):
        listen(settings)
    with pytest.raises(InvalidInputError, match="host 'no such host'"):
        listen(replace(settings, host="no such host"))


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("0.0.0.0", "127.0.0.1")]
)
def test_the_url_is_one_that_a_browser_here_can_open(host: str, shown: str) -> None:
    settings = ServerSettings(host=host, port=0, token="x" * 16, root_path="/node/n1")
    with listen(settings) as listening:
        assert url_of(listening, settings) == f"http://{shown}:{listening.getsockname()[1]}/node/n1/"


def test_a_unix_socket_is_its_owners_alone(tmp_path: Path) -> None:
    settings = ServerSettings(uds=tmp_path / "server.sock")
    with listen(settings) as listening:
        assert stat.S_IMODE((tmp_path / "server.sock").stat().st_mode) == 0o600
        assert url_of(listening, settings) == f"unix://{tmp_path}/server.sock"
        with pytest.raises(UnavailableError, match=r"cannot listen on .*server.sock"):
            listen(settings)


def test_the_unix_socket_of_a_dead_server_is_replaced_and_a_file_of_somebody_else_is_not(tmp_path: Path) -> None:
    listen(ServerSettings(uds=tmp_path / "server.sock")).close()
    listen(ServerSettings(uds=tmp_path / "server.sock")).close()
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(UnavailableError, match="cannot listen on"):
        listen(ServerSettings(uds=tmp_path / "notes"))
    assert (tmp_path / "notes").read_text() == "mine"
