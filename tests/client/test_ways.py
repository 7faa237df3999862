"""Ways to a server: a Unix socket, TLS by a site's authority, a proxy's prefix; and the token that is sent."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.client.faulty import answer, faulty
from tests.serving import serving

import crosswind
from crosswind.data.schema.errors import InvalidInputError, UnavailableError

NONE = answer(200)


@pytest.mark.parametrize("form", ["unix://{path}", "unix:{path}", "http+unix://{quoted}", "http+unix://{quoted}/a/b"])
def test_a_unix_socket_has_three_forms(tmp_path: Path, form: str) -> None:
    path = tmp_path / "s.sock"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()
    url = form.format(path=path, quoted=str(path).replace("/", "%2F"))
    with faulty(NONE, listening=listening, url=url) as server, crosswind.connect(server.url) as client:
        assert client.runs() == ()
    assert server.requests[0].startswith(f"GET {'/a/b' if url.endswith('/a/b') else ''}/v1/runs")


def test_a_server_at_a_unix_socket_answers_its_user(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with serving(tmp_path / "home", "--uds", str(path)) as (_, _), crosswind.connect(f"unix:{path}") as client:
        assert client.runs() == ()


def test_a_proxys_prefix_precedes_every_path() -> None:
    with faulty(NONE) as server, crosswind.connect(f"{server.url}/node/n17/8321/") as client:
        client.runs()
    assert server.requests[0].startswith("GET /node/n17/8321/v1/runs?limit=20 ")


def test_the_token_is_that_of_the_call_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("of-the-file\n")
    file.chmod(0o600)
    monkeypatch.delenv("CROSSWIND_TOKEN", raising=False)
    monkeypatch.setenv("CROSSWIND_TOKEN_FILE", str(file))
    with faulty(NONE) as server:
        with crosswind.connect(server.url) as client:
            client.runs()
        monkeypatch.setenv("CROSSWIND_TOKEN", "of-the-environment")
        for token in (None, "of-the-call"):
            with crosswind.connect(server.url, token=token) as client:
                client.runs()
    assert server.fields("X-Crosswind-Token") == ["of-the-file", "of-the-environment", "of-the-call"]


def test_a_sites_authority_is_trusted_where_its_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, context = certified(tmp_path)
    with faulty(NONE) as server, tls_before(server.url, context) as url:
        with (
            crosswind.connect(url, deadline_seconds=1) as distrusting,
            pytest.raises(UnavailableError, match=r"CERTIFICATE_VERIFY_FAILED.*\(\d tr"),
        ):
            distrusting.runs()
        assert server.requests == []
        with crosswind.connect(url, ca_file=str(authority)) as client:
            assert client.runs() == ()
        monkeypatch.setenv("CROSSWIND_CA_FILE", str(authority))
        with crosswind.connect(url) as client:
            assert client.runs() == ()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    with pytest.raises(InvalidInputError, match=rf"CA file {file}: expected certificates in PEM"):
        crosswind.connect("https://a.test", ca_file=str(file))


@pytest.mark.parametrize("url", ["http+unix://relative", "http+unix:///x", "unix:relative", "http+unix://"])
def test_a_socket_without_a_whole_path_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="expected http://HOST:PORT"):
        crosswind.connect(url)


def certified(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return the file of an authority, and the context of a server on 127.0.0.1 that it vouches for."""
    key, certificate = folder / "key.pem", folder / "ca.pem"
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=site"]
    making += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(making, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


@contextmanager
def tls_before(url: str, context: ssl.SSLContext) -> Iterator[str]:
    """Yield the https address of what is before this server."""
    port = int(url.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    plain, _ = listening.accept()
                    with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as outside:
                        pass_on(outside, port)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)


def pass_on(outside: ssl.SSLSocket, port: int) -> None:
    """Pass requests of one part, and their answers, on until the client closes."""
    with socket.create_connection(("127.0.0.1", port)) as inside:
        while request := outside.recv(65536):
            inside.sendall(request)
            outside.sendall(inside.recv(65536))
