"""Coverage of answers: how many files of the lake could not be read for them."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = b"crosswind-damaged-files"


class Coverage:
    """Adds to every answer how many damaged files its rows may lack; nothing where there are none."""

    def __init__(self, app: ASGIApp, count: Callable[[], int]) -> None:
        self.app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""

        async def send_with_count(message: Message) -> None:
            if message["type"] == "http.response.start" and (damaged := self._count()):
                message["headers"] = [*message.get("headers", ()), (HEADER, str(damaged).encode())]
            await send(message)

        await self.app(scope, receive, send_with_count)
