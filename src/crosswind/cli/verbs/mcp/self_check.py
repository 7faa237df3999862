"""One call of the tools as an agent makes it, in this process."""

from typing import Any

import anyio
from mcp.client import Client as Agent
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult

from crosswind.cli.verbs.mcp.answered import Answered, as_text, tokens
from crosswind.cli.verbs.mcp.door import door, for_one
from crosswind.client.protocol import Client
from crosswind.data.schema.errors import UnavailableError

CALLS: dict[str, dict[str, Any]] = {
    "runs": {"limit": 1},
    "jobs": {"limit": 1},
    "sql": {"query": "select count(*) as runs from runs"},
}


def self_check(client: Client, *, reads_only: bool = False) -> dict[str, str]:
    """Return what each of some tools answered, in words. Raises: UnavailableError naming one that failed."""
    names, results = anyio.run(_called, door(for_one(client), reads_only=reads_only))
    checked = {"tools": ", ".join(names)}
    for name, result in results.items():
        if result.is_error:
            raise UnavailableError(f"tool {name}: {getattr(result.content[0], 'text', 'failed')}")
        answer = Answered.model_validate(result.structured_content)
        checked[name] = answer.reason or f"answers, in {tokens(as_text(answer))} tokens at most"
    return checked


async def _called(server: MCPServer) -> tuple[list[str], dict[str, CallToolResult]]:
    """Return the names of the tools, and what those of CALLS answered."""
    async with Agent(server) as agent:
        names = [tool.name for tool in (await agent.list_tools()).tools]
        return names, {name: await agent.call_tool(name, arguments) for name, arguments in CALLS.items()}
