"""Totals over all batches, which are kept with each batch: no look at millions of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.data.catalog.test_catalog import at_revision

from crosswind.data.catalog.catalog import Catalog, Ingested, NewBatch
from crosswind.data.catalog.database import open_database, sqlite_url

SESSIONS, EACH = 120, 3


def test_sessions_at_once_lose_and_double_nothing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.data.catalog.catalog.SLOTS", 2)

    def note(number: int) -> None:
        with catalog.write() as session:
            for part in range(EACH):
                session.add_batches([NewBatch(f"b{number}-{part}", "agent", rows=number, skipped=part)], ())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(SESSIONS)))
    with catalog.read() as session:
        total = EACH * sum(range(SESSIONS))
        assert session.ingested() == Ingested(EACH * SESSIONS, total, SESSIONS * sum(range(EACH)))


def test_batches_of_before_count(tmp_path: Path, postgres_url: str) -> None:
    names = ("batch_id", "origin", "received_ns", "rows", "skipped")
    before = [dict(zip(names, (f"b{number}", "agent", number, 5, 1), strict=True)) for number in range(3)]
    for url, of_before in ((sqlite_url(tmp_path / "catalog.sqlite"), before), (postgres_url, before)):
        at_revision(url, "0023", {"ingest_batches": of_before})
        catalog = Catalog(open_database(url))
        with catalog.write() as session:
            session.add_batch("new", "agent", row_count=2, skipped=0)
        with catalog.read() as session:
            assert session.ingested() == Ingested(4, 17, 3)
            assert (session.last_batch_ns() or 0) > 3
        catalog.close()
