import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp.client import Client as Agent
from mcp.client.streamable_http import streamable_http_client
from tests.api.two_users import fill
from tests.serving import running

from crosswind.api.server import listen
from crosswind.api.settings import ServerSettings
from crosswind.cli.verbs.mcp.door import PATH
from crosswind.cli.verbs.mcp.serving import uvicorn_config_of
from crosswind.client.local import Local
from crosswind.data.store.store import Store

Call = Callable[..., Mapping[str, Any]]


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the store of ann and bob."""
    home = tmp_path_factory.mktemp("two") / "store"
    with Store.open(home) as store:
        fill(store)
    return home


@contextmanager
def serving_mcp(source: str | Local, token: str | None = None) -> Iterator[str]:
    """Yield the URL of the agent door over HTTP, in a thread of this process."""
    with listen(ServerSettings(port=0)) as listening:
        server = uvicorn.Server(uvicorn_config_of(source, token))
        with running(server, listening):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"


def call_over_http(url: str, secret: str, name: str, *, mode: str = "auto", **arguments: object) -> Any:
    """Return what a tool answers to an agent that brings this token; `legacy` shakes hands as older agents do."""

    async def ask() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
            Agent(streamable_http_client(url, http_client=http), mode=mode) as agent,
        ):
            return await agent.call_tool(name, arguments)

    return anyio.run(ask)


def said(result: Any) -> Mapping[str, Any]:
    """Return the answer in a result, which holds it as text and as structure alike."""
    assert not result.is_error, result.content
    [content] = result.content
    assert json.loads(content.text) == result.structured_content
    answer: Mapping[str, Any] = result.structured_content
    return answer
