"""The feed of new events: one look at the catalog for all streams of a process."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from crosswind.api.edge.limits import Limits
from crosswind.api.problems import BUSY, TOO_MANY, Kind
from crosswind.api.thread_beside import WarnOnce
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.catalog.live.events import StoredEvent
from crosswind.data.schema.access import Principal, RowRule
from crosswind.data.schema.answers.events import Event, EventFilter
from crosswind.data.schema.errors import ProjectError

LOOK_SECONDS = 0.5  # between two looks for new events
AT_ONCE = 1000  # events of one look
QUEUED_MAX = 1000  # events that wait for one client
READERS = 4  # threads that read events for streams, which are catching up
STOPPING, BEHIND, TOKEN_OVER = "the server stops", "events came faster than they were read", "the token has ended"
log = logging.getLogger("crosswind.events")


@dataclass(eq=False)
class Stream:
    """One client's stream: the events for it that it has not been sent yet, and why it is to end."""

    principal: Principal
    wanted: EventFilter
    token_id: str | None = None
    since: int = 0  # events after this one come by the feed
    position: int = 0  # all events up to this one were sent, or are not for it
    end: str | None = None
    _looked_at: int = 0
    _waiting: deque[StoredEvent] = field(default_factory=deque)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, events: Sequence[StoredEvent], upto: int) -> None:
        """Take in those of the events up to an id that it wants; all of them may be seen."""
        wanted = [one for one in events if self.wanted.takes(one.event)]
        if len(self._waiting) + len(wanted) > QUEUED_MAX:
            self.finish(BEHIND)
        elif self.end is None:
            self._looked_at = upto
            self._waiting += wanted
        if wanted:
            self._news.set()

    def taken(self) -> list[Event]:
        """Return what waits, which is sent now; what was read from the catalog is not sent twice."""
        waiting = [one.event for one in self._waiting if one.event.event_id > self.position]
        self._waiting.clear()
        self._news.clear()
        self.position = max(self.position, self._looked_at)
        return waiting

    def finish(self, reason: str) -> None:
        """End it; what waits is sent before, unless the token is not valid any more."""
        self.end = self.end or reason
        self._news.set()

    async def is_news(self, within_seconds: float) -> bool:
        """Return whether something came within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self._news.wait()
        return self._news.is_set()


class Feed:
    """Hands new events to the streams of this process; it looks for them while there are streams."""

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self.readers = CapacityLimiter(READERS)
        self._catalog = catalog
        self._limits = limits
        self._streams: dict[Stream, None] = {}
        self._of_principal: Counter[str] = Counter()
        self._position = 0
        self._beginning = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._looker = CapacityLimiter(1)
        self._is_over = False
        self._warn = WarnOnce(log)

    @property
    def stream_count(self) -> int:
        """Return how many streams are open."""
        return len(self._streams)

    def refusal(self, principal: Principal) -> tuple[Kind, str] | None:
        """Return why this principal may not open a stream now; None if they may."""
        if self._of_principal[principal.mark] >= self._limits.client_streams:
            return TOO_MANY, f"streams: expected at most {self._limits.client_streams} of one caller at once"
        if self._is_over or self._of_principal.total() >= self._limits.streams:
            return BUSY, f"streams: expected at most {self._limits.streams} at once"
        return None

    @asynccontextmanager
    async def joined(self, stream: Stream) -> AsyncIterator[None]:
        """Hand events to the stream within the context. Raises: what database.NO_ANSWER holds."""
        self._of_principal[stream.principal.mark] += 1  # before the first wait: it counts while it begins
        try:
            async with self._beginning:
                await self._begin()
                stream.since = stream.position = self._position
                self._streams[stream] = None
            yield
        finally:
            self._leave(stream)

    def end(self) -> None:
        """End all streams: their clients come back to the next server with the id of the last event that they got."""
        self._is_over = True
        for stream in self._streams:
            stream.finish(STOPPING)

    async def _begin(self) -> None:
        if self._looking is None or self._looking.done():
            self._position = await run_sync(self._newest, limiter=self._looker)
            self._looking = asyncio.create_task(self._look_while_heard())

    def _leave(self, stream: Stream) -> None:
        self._streams.pop(stream, None)
        self._of_principal[stream.principal.mark] -= 1
        if not self._of_principal[stream.principal.mark]:
            del self._of_principal[stream.principal.mark]

    async def _look_while_heard(self) -> None:
        while self._streams:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                while await self._look() == AT_ONCE:
                    pass
            except (ProjectError, OSError, *NO_ANSWER) as error:
                self._warn(error)
            except Exception:
                log.exception("looking for events failed")

    async def _look(self) -> int:
        """Hand on what is new; return how many events that was."""
        stored = await run_sync(self._stored, limiter=self._looker)
        if stored:
            self._position = stored[-1].event.event_id
            self._hand_on(stored)
        return len(stored)

    def _hand_on(self, stored: Sequence[StoredEvent]) -> None:
        ended = {one.ended_token for one in stored if one.ended_token}
        shown = [one for one in stored if one.ended_token is None]
        by_rule: dict[RowRule, list[StoredEvent]] = {}
        for stream in self._streams:
            if stream.token_id in ended:
                stream.finish(TOKEN_OVER)
                continue
            rule = stream.principal.row_rule
            if rule not in by_rule:
                by_rule[rule] = [one for one in shown if one.may_be_seen(rule)]
            stream.put(by_rule[rule], self._position)

    def _newest(self) -> int:
        with self._catalog.read() as session:
            return session.events.newest()

    def _stored(self) -> list[StoredEvent]:
        with self._catalog.read() as session:
            return session.events.stored_after(self._position, limit=AT_ONCE)
