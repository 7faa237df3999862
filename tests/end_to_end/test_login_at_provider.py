"""A person logs in at real OpenID Connect providers, with a real browser, and out again."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.needs import lack, node_module
from tests.serving import answering

from crosswind.api.oidc_settings import OidcSettings
from crosswind.data.store.store import Store

ANNA = {"sub": "a-1", "preferred_username": "anna", "groups": ["operators"]}
SECRET = "a secret of the client: 100%"
SCRIPT = Path(__file__).parent / "certified_provider.mjs"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def small_provider(port: int, _here: str) -> Sequence[str]:
    """Return the command of a provider that knows Anna."""
    command = (sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "1")
    return *command, "--user-claims", json.dumps(ANNA)


def certified_provider(port: int, here: str) -> Sequence[str]:
    """Return the command of a certified provider, which lets in whoever says so."""
    node = shutil.which("node") or lack("nodejs", "no program node")
    return node, str(SCRIPT), str(node_module("oidc-provider")), str(port), here, SECRET


@contextmanager
def answering_at(port: int, command: Sequence[str], log: Path) -> Iterator[None]:
    """Run a program for the time of a test, from when it answers at the port."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            wait_for(port)
            yield
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


def settings_file(folder: Path, issuer: str, here: str) -> Path:
    (folder / "secret").write_text(SECRET)
    facts = {"issuer": issuer, "client_id": "crosswind", "server_url": here, "label": "the lab"}
    facts["client_secret_file"] = str(folder / "secret")
    lines = [f"{name} = {json.dumps(value)}" for name, value in facts.items()]
    scopes = 'scopes = ["openid", "profile", "groups"]'
    path = folder / "oidc.toml"
    path.write_text("\n".join([*lines, scopes, "[roles]", 'operators = "admin"']))
    return path


@contextmanager
def logged_in(browser: Browser, folder: Path, kind: str) -> Iterator[tuple[Page, str, str]]:
    """Yield the page of a browser that is logged in as anna, our address and the provider's."""
    with Store.open(folder / "store"):
        pass
    ports = free_port(), free_port()
    here, issuer = (f"http://localhost:{port}" for port in ports)
    command = (small_provider if kind == "small" else certified_provider)(ports[1], here)
    oidc = OidcSettings.load(settings_file(folder, issuer, here))
    with (
        answering_at(ports[1], command, folder / "provider.log"),
        answering(folder / "store", oidc.host, port=ports[0], host="localhost", require_token=True, oidc=oidc),
        browser.new_context() as context,
    ):
        page = context.new_page()
        page.goto(f"{here}/models")
        page.get_by_role("link", name="Log in at the lab").click()
        if kind == "small":
            page.get_by_role("button", name="a-1").click()
        else:
            page.locator("input[name=login]").fill("anna")
            page.locator("input[name=password]").fill("any")
            page.get_by_role("button", name="Sign-in").click()
            page.get_by_role("button", name="Continue").click()
        page.wait_for_url(f"{here}/models")
        yield page, here, issuer


@pytest.mark.parametrize("kind", ["small", pytest.param("certified", marks=pytest.mark.thorough)])
def test_login_and_logout_at_a_real_provider(browser: Browser, tmp_path: Path, kind: str) -> None:
    with logged_in(browser, tmp_path, kind) as (page, here, issuer):
        page.goto(f"{here}/login")
        assert "You are anna." in page.inner_text("main")
        assert page.request.get(f"{here}/metrics").status == 200  # as an administrator, whom her group makes her
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url(f"{issuer}/**")
        if kind == "certified":
            page.get_by_role("button", name="Yes, sign me out").click()
            page.wait_for_url(f"{here}/login")  # where the provider was asked to lead back to
        page.goto(f"{here}/models")
        assert page.url.startswith(f"{here}/login?next=")
