"""Quotas: how much a user's tokens may send in a day, UTC."""

import time

from crosswind.data.schema.errors import ProjectError
from crosswind.data.store.store import Store

DAY_SECONDS = 86_400


class QuotaError(ProjectError):
    """A user has sent as much as one may in a day; `retry_seconds` until the next one."""

    def __init__(self, user: str, quota_bytes: int) -> None:
        self.retry_seconds = DAY_SECONDS - int(time.time()) % DAY_SECONDS
        super().__init__(f"user {user!r}: the {quota_bytes} bytes of today (UTC) are used up, send the rest tomorrow")


def charge(store: Store, sent_bytes: int, quota_bytes: int | None) -> None:
    """Count what the store's user sends today, once it fits in. Raises: QuotaError.

    Whoever may change all rows, as agents and services that are bound to nobody, has no quota.
    """
    user = store.rule.user
    if quota_bytes is None or user is None or store.rule.changes_all:
        return
    now_ns = time.time_ns()
    with store.whole.catalog.write() as session:
        if session.usage.of(user, now_ns) + sent_bytes > quota_bytes:
            raise QuotaError(user, quota_bytes)
        session.usage.add(user, now_ns, sent_bytes)
