"""Both transports with the SDK's own client: whose rows come, and who is refused."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import anyio
import pytest
from mcp.client import Client as Agent
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.api.access.issuing import issued, revoked
from tests.api.two_users import ANN, BOB, RUNS
from tests.cli.mcp.conftest import call_over_http, said, serving_mcp
from tests.serving import answering

from crosswind.cli.main import main
from crosswind.client.local import Local
from crosswind.data.schema.access import Principal, PrincipalKind, Scope
from crosswind.data.store.store import Store

COUNT = {"query": "select user, count(*) as runs from runs group by all order by user"}
READER = Principal(PrincipalKind.PERSON, "ann", scopes=frozenset({Scope.READ}), user="ann")
SENDER = Principal(PrincipalKind.AGENT, "n1", scopes=frozenset({Scope.INGEST}))
STRANGER = Principal(PrincipalKind.PERSON, "zoe", scopes=frozenset({Scope.READ}), user="zoe")


@pytest.fixture(scope="module")
def store(two: Path) -> Iterator[Store]:
    with Store.open(two) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(store: Store) -> Iterator[str]:
    with serving_mcp(Local(store), token="configured-secret-of-the-admin") as address:
        yield address


@pytest.mark.parametrize(("who", "rows"), [(ANN, [["ann", RUNS + 2]]), (BOB, [["bob", RUNS + 2]]), (STRANGER, [])])
def test_over_http_the_token_decides_whose_rows_come(url: str, store: Store, who: Principal, rows: object) -> None:
    secret = issued(store, who).secret
    assert said(call_over_http(url, secret, "sql", **COUNT))["answer"]["rows"] == rows
    runs = said(call_over_http(url, secret, "runs", limit=100))
    assert len(runs["answer"]["runs"]) + (runs["next_cursor"] is not None) >= bool(rows)
    assert {run.split("-")[0] for run in runs["evidence"]} == ({who.name} if rows else set())


def test_older_agents_that_shake_hands_first_are_answered_too(url: str, store: Store) -> None:
    secret = issued(store, ANN).secret
    answer = said(call_over_http(url, secret, "sql", mode="legacy", **COUNT))
    assert answer["answer"]["rows"] == [["ann", RUNS + 2]]


def test_a_run_of_another_user_is_as_if_it_did_not_exist(url: str, store: Store) -> None:
    secret = issued(store, ANN).secret
    for name, arguments in (("explain", {"run": "bob-run1"}), ("compare", {"first": "ann-run1", "second": "bob-run1"})):
        result = call_over_http(url, secret, name, **arguments)
        assert result.is_error
        assert "run 'bob-run1' is not stored" in result.content[0].text


def test_the_configured_token_is_an_administrators(url: str) -> None:
    answer = said(call_over_http(url, "configured-secret-of-the-admin", "sql", **COUNT))
    assert answer["answer"]["rows"] == [["ann", RUNS + 2], ["bob", RUNS + 2]]


def test_a_token_that_may_not_tune_reads_and_suggests_nothing(url: str, store: Store) -> None:
    secret = issued(store, READER).secret
    assert said(call_over_http(url, secret, "tune_status", study="ann-search"))["answer"]["name"] == "ann-search"
    refused = call_over_http(url, secret, "tune_suggest", study="ann-search", owner="agent")
    assert refused.is_error
    assert "this needs the scope tune" in refused.content[0].text


def status_of(url: str, headers: dict[str, str]) -> tuple[int, str]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, body, {**accepted, **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_nobody_gets_in_over_http_without_a_token_that_holds(url: str, store: Store) -> None:
    ended = issued(store, ANN)
    for headers in ({}, {"Authorization": "Bearer cw_" + "A" * 43}, bearer(revoked(store.catalog, ended))):
        status, text = status_of(url, headers)
        assert (status, json.loads(text)["type"]) == (401, "/problems/unauthorized")
    status, text = status_of(url, bearer(issued(store, SENDER).secret))
    assert (status, json.loads(text)["type"]) == (403, "/problems/out-of-scope")


def test_a_page_of_another_site_or_a_rebound_name_is_refused(url: str, store: Store) -> None:
    token = bearer(issued(store, ANN).secret)
    assert status_of(url, {**token, "Origin": "https://evil.example"})[0] == 403
    assert status_of(url, {**token, "Host": "evil.example"})[0] == 421
    assert status_of(url, token)[0] == 200


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_over_a_server_its_tokens_and_rules_hold(two: Path, store: Store) -> None:
    secret = issued(store, ANN).secret
    with answering(two) as server, serving_mcp(server) as url:
        assert said(call_over_http(url, secret, "sql", **COUNT))["answer"]["rows"] == [["ann", RUNS + 2]]
        refused = call_over_http(url, issued(store, READER).secret, "tune_suggest", study="ann-search", owner="a")
        assert "this needs the scope tune" in refused.content[0].text
        unknown = call_over_http(url, "cw_" + "A" * 43, "runs")
        assert unknown.is_error
        assert "the token is unknown here" in unknown.content[0].text


def over_stdio(environment: dict[str, str], *words: str, mode: str = "auto") -> tuple[list[str], object]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "crosswind", "mcp", *words], env={**os.environ, **environment}
    )

    async def ask() -> tuple[list[str], object]:
        async with Agent(stdio_client(command), mode=mode) as agent:
            names = [tool.name for tool in (await agent.list_tools()).tools]
            return names, said(await agent.call_tool("sql", COUNT))["answer"]["rows"]

    return anyio.run(ask)


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.thorough)])
def test_over_standard_input_the_store_here_is_its_owners(two: Path, mode: str) -> None:
    names, rows = over_stdio({"CROSSWIND_HOME": str(two), "CROSSWIND_SERVER": ""}, mode=mode)
    assert "tune_suggest" in names
    assert rows == [["ann", RUNS + 2], ["bob", RUNS + 2]]


@pytest.mark.thorough
def test_over_standard_input_a_server_gives_what_the_token_allows(two: Path, store: Store, tmp_path: Path) -> None:
    environment = {"CROSSWIND_TOKEN": issued(store, ANN).secret, "CROSSWIND_HOME": str(tmp_path)}
    with answering(two) as server:
        names, rows = over_stdio(environment, "--server", server, "--read-only")
    assert "tune_suggest" not in names
    assert rows == [["ann", RUNS + 2]]


def test_a_check_calls_the_tools_once(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("CROSSWIND_HOME", str(two))
    assert main(["mcp", "--check"]) == 0
    assert "sql: answers, in" in capsys.readouterr().out
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "empty"))
    assert main(["mcp", "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == "no run that you may see meets these conditions"
    assert main(["mcp", "--check", "--server", "http://127.0.0.1:1"]) == 75
    assert main(["mcp", "--http", "--port", "70000"]) == 2
    assert "--port 70000: expected 0 to 65535" in capsys.readouterr().err


@pytest.mark.thorough
def test_over_http_it_listens_on_this_machine_alone(two: Path) -> None:
    environment = {**os.environ, "CROSSWIND_HOME": str(two)}
    command = [sys.executable, "-m", "crosswind", "mcp", "--http", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert url.startswith("http://127.0.0.1:")
            assert status_of(url, {})[0] == 401
        finally:
            process.terminate()
            process.wait(timeout=20)
