"""Execution of the examples of the API's description, in their order.

python -m tests.api.openapi.executing    # executes the examples on a new sample store, and writes their answers down
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Any

import httpx2
from anyio import CancelScope
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.api.openapi.sample_store import NODE, fill
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.openapi.examples import JSON, RESOURCES, Example, examples, folder
from crosswind.data.store.store import Store

SHOWN = 2  # rows of a list in a written answer
ME = re.compile(rf"(?<=^person ){getuser()}$|^{getuser()}$")
SECRET = re.compile(r"\b(cw_|whsec_)[\w/+-]+=*")


@dataclass(frozen=True)
class Executed:
    """An example, and the answer to its request."""

    example: Example
    response: httpx2.Response

    @property
    def answer(self) -> Any:
        """The answer's JSON, or the text that was asked for; None where it is bytes."""
        if self.response.headers.get("content-type", "").startswith(JSON):
            return self.response.json()
        return self.response.text if self.example.media != JSON else None


def execute(client: httpx2.Client, names: Mapping[str, str]) -> Iterator[Executed]:
    """Yield every example, executed; `names` are the values that no earlier answer gives."""
    values: dict[str, str] = dict(names)
    for example in examples():
        executed = Executed(example, _sent(client, example, values))
        values |= values_of([executed])
        yield executed


def values_of(executed: Iterable[Executed]) -> dict[str, str]:
    """Return the values that answers give to later examples, by name."""
    done = [one for one in executed if one.response.status_code == one.example.status]
    return {name: str(_at(one.answer, pointer)) for one in done for name, pointer in one.example.gives.items()}


def _sent(client: httpx2.Client, example: Example, values: Mapping[str, str]) -> httpx2.Response:
    method, _, path = example.operation.partition(" ")
    for name, value in example.path.items():
        path = path.replace(f"{{{name}}}", values.get(str(value), str(value)))
    accept = {"Accept": example.media} if example.media != JSON else {}
    sent: dict[str, Any] = {"params": example.query, "headers": accept | example.headers}
    if example.file:
        document = client.get("/openapi.json").json()
        content = document["paths"][example.operation.partition(" ")[2]][method.lower()]["requestBody"]["content"]
        sent["headers"] |= {"Content-Type": next(iter(content))}
        sent["content"] = (folder() / example.file).read_bytes()
    elif example.body is not None:
        sent["json"] = example.body
    return client.request(method, path, **sent)


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def shape(value: Any) -> Any:
    """Return a value with the types of its parts for them: of a list that of its first."""
    match value:
        case dict():
            return {name: shape(part) for name, part in value.items()}
        case list():
            return [shape(part) for part in value[:1]]
        case bool() | str() | None:
            return type(value).__name__
        case _:
            return "number"


@contextmanager
def sample_client(home: Path) -> Iterator[tuple[httpx2.Client, dict[str, str]]]:
    """Yield a client of a server on a sample store, and the values that examples have in capitals."""
    with Store.open(home) as store:
        app = create_app(store)
        app.add_middleware(Leaving)
        with store.catalog.write() as session:
            names = {"PSEUDONYM": session.people.pseudonym("anna") or ""}
        with own_client(app) as client:
            yield client, names


class Leaving:
    """Leaves a stream after its first event, as it would never end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        with CancelScope() as stay:

            async def send_some(message: Message) -> None:
                is_event = b"\ndata: " in message.get("body", b"")
                await send(message | {"more_body": False} if is_event else message)
                if is_event:
                    stay.cancel()

            await self.app(scope, receive, send_some)


def _shortened(value: Any) -> Any:
    match value:
        case dict():
            return {name: _shortened(part) for name, part in value.items()}
        case list():
            kept = value if all(isinstance(part, int | float) for part in value) else value[:SHOWN]
            return [_shortened(part) for part in kept]
        case str():
            value = ME.sub("anna", value)
            return SECRET.sub(r"\1SECRET", value).replace(NODE, "n1")
        case _:
            return value


def _write(executed: Mapping[tuple[str, str], Executed]) -> None:
    for resource in RESOURCES:
        path = Path(str(folder() / f"{resource}.json"))
        content = json.loads(path.read_text())
        for operation, named in content.items():
            for name, facts in named.items():
                done = executed[operation, name]
                if done.response.status_code != facts.get("status", 200):
                    sys.stderr.write(f"{operation} {name}: {done.response.status_code} {done.response.text[:500]}\n")
                elif done.answer is not None:
                    facts["answer"] = _shortened(done.answer)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        fill(Path(scratch) / "store", Path(scratch))
        with sample_client(Path(scratch) / "store") as (client, names):
            _write({(done.example.operation, done.example.name): done for done in execute(client, names)})
