"""Notices of what will end: fields of answers of operations that are deprecated.

Source: RFC 9745 (Deprecation), RFC 8594 (Sunset).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import MappingProxyType

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.data.schema.errors import InvalidInputError

NOTICE = timedelta(days=180)


@dataclass(frozen=True)
class Deprecated:
    """An operation that will end: since when this is announced, when it ends, and where it says what to use instead.

    Raises: InvalidInputError for less notice than is promised.
    """

    since: datetime
    sunset: datetime
    link: str

    def __post_init__(self) -> None:
        if self.sunset - self.since < NOTICE:
            raise InvalidInputError(
                f"sunset {self.sunset:%Y-%m-%d}: expected {NOTICE.days} days after {self.since:%Y-%m-%d} or later"
            )

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields of its answers."""
        return {
            "Deprecation": f"@{int(self.since.timestamp())}",
            "Sunset": format_datetime(self.sunset.astimezone(UTC), usegmt=True),
            "Link": f'<{self.link}>; rel="deprecation"; type="text/html"',
        }


DEPRECATED: Mapping[str, Deprecated] = MappingProxyType({})  # by operation, as `GET /v1/runs/{run_id}`: none so far


class Notices:
    """Adds the notices of deprecated operations to their answers."""

    def __init__(self, app: ASGIApp, deprecated: Mapping[str, Deprecated] = DEPRECATED) -> None:
        self.app = app
        self._deprecated = deprecated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or not self._deprecated:
            await self.app(scope, receive, send)
            return

        async def send_with_notice(message: Message) -> None:
            if message["type"] == "http.response.start" and (notice := self._notice(scope)):
                headers = MutableHeaders(scope=message)
                for name, value in notice.headers.items():
                    headers.append(name, value)
            await send(message)

        await self.app(scope, receive, send_with_notice)

    def _notice(self, scope: Scope) -> Deprecated | None:
        path = getattr(scope.get("route"), "path", "")
        return self._deprecated.get(f"{scope['method']} {path}")
