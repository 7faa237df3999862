"""A person logs in at a real OpenID Connect provider, with a real browser, and out again."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser
from tests.serving import serving

from crosswind.data.store.store import Store

ANNA = {"sub": "a-1", "preferred_username": "anna", "groups": ["operators"]}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def provider(folder: Path) -> Iterator[str]:
    """Yield the issuer of a provider that knows Anna, in a process of its own."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "1"]
    with (folder / "provider.log").open("wb") as log:
        process = subprocess.Popen([*command, "--user-claims", json.dumps(ANNA)], stdout=log, stderr=log)
        try:
            wait_for(port)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


def wait_for(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing answers at port {port}")


def test_login_and_logout_at_a_real_provider(browser: Browser, tmp_path: Path) -> None:
    with Store.open(tmp_path / "store"):
        pass
    port, settings = free_port(), tmp_path / "oidc.toml"
    with provider(tmp_path) as issuer:
        here = f"http://localhost:{port}"
        facts = {"issuer": issuer, "client_id": "crosswind", "server_url": here, "label": "the lab"}
        (tmp_path / "secret").write_text("any")
        facts["client_secret_file"] = str(tmp_path / "secret")
        lines = [f"{name} = {json.dumps(value)}" for name, value in facts.items()]
        settings.write_text("\n".join([*lines, "[roles]", 'operators = "admin"']))
        words = ("--require-token", "--port", str(port), "--host", "localhost", "--oidc", str(settings))
        with serving(tmp_path / "store", *words), browser.new_context() as context:
            page = context.new_page()
            page.goto(f"{here}/models")
            page.get_by_role("link", name="Log in at the lab").click()
            page.get_by_role("button", name="a-1").click()
            page.wait_for_url(f"{here}/models")
            page.goto(f"{here}/login")
            assert "You are anna." in page.inner_text("main")
            assert page.request.get(f"{here}/metrics").status == 200  # as an administrator, whom her group makes her
            page.get_by_role("button", name="Log out").click()
            page.wait_for_url(f"{issuer}/oauth2/end_session?*")
            page.goto(f"{here}/models")
            assert page.url.startswith(f"{here}/login?next=")
