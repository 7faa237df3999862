"""Tokens of the catalog, kept for a moment, so that a busy client costs no query a request."""

import time
from collections import OrderedDict
from collections.abc import Callable

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.tokens import digest_of
from crosswind.data.schema.answers.tokens import Token

FRESH_SECONDS = 0.5  # after which a token is looked up again: so long a revoked one may still hold
KEPT_MAX = 10_000
LOOKUPS = 8  # at once, in threads of their own: slow answers must not keep callers waiting at the door
USE_NS = 600 * 1_000_000_000  # between two notes of a token's use


class TokenCache:
    """Looks up tokens by their secrets, and notes their use; for one event loop. `clock` returns seconds."""

    def __init__(self, catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog = catalog
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Token | None]] = OrderedDict()
        self._used_ns: dict[str, int] = {}
        self._ahead_ns = 0  # of this machine's clock is the catalog's, by which tokens expire at all servers alike
        self._lookups = CapacityLimiter(LOOKUPS)

    async def find(self, secret: str) -> Token | None:
        """Return the token of this secret, also one that holds no more; None where there is none.

        Raises: what database.NO_ANSWER holds.
        """
        digest = digest_of(secret)
        now = self._clock()
        kept = self._kept.get(digest)
        if kept is not None and now - kept[0] < FRESH_SECONDS:
            return kept[1]
        token = await run_sync(self._fetch, digest, limiter=self._lookups)
        self._keep(digest, now, token)
        return token

    def now_ns(self) -> int:
        """Return the time in ns UTC by the catalog's clock, as of the last look-up."""
        return time.time_ns() + self._ahead_ns

    def forget(self) -> None:
        """Look up every token again when it is next needed, because this server has changed some."""
        self._kept.clear()

    def note_uses(self) -> list[str]:
        """Write down which tokens were used since the last call. Return problems, of which there are none."""
        used_ns, self._used_ns = self._used_ns, {}
        if used_ns:
            with self._catalog.write() as session:
                session.tokens.note_use(used_ns)
        return []

    def _fetch(self, digest: str) -> Token | None:
        self._ahead_ns = self._catalog.clock() - time.time_ns()
        with self._catalog.read() as session:
            return session.tokens.of_digest(digest)

    def _keep(self, digest: str, now: float, token: Token | None) -> None:
        self._kept[digest] = now, token
        self._kept.move_to_end(digest)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        now_ns = self.now_ns()
        if token is not None and now_ns - (token.used_ns or 0) > USE_NS and token.refusal(now_ns) is None:
            self._used_ns[token.token_id] = now_ns
