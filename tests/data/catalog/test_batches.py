"""Batches are forgotten after some weeks; what may have been stored before then is refused, and named."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.api.segments import HEAT
from tests.data.catalog.test_catalog import at_revision

from crosswind.api.housekeeping import forget_batches, housekeeping
from crosswind.api.settings import ServerSettings
from crosswind.api.thread_beside import Ending
from crosswind.data.catalog.catalog import Catalog, NewBatch
from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.schema.batch import DAY_NS, LAST_NS, REMEMBERED_DAYS, ForgottenError, days_of, made_in
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded, load_segment, load_spool
from crosswind.ingest.load.receive import Fate, Received, receive
from crosswind.ingest.load.together import Batch, store_together
from crosswind.ingest.spool.segment_reader import Unpacked
from crosswind.ingest.spool.spool import SpoolWriter, batch_id, sealed_segments


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    with Store.open(tmp_path / "home", database=url) as opened:
        yield opened


def segment(spool: Path, value: int, age_days: float) -> Unpacked:
    """Return a segment of one sample, made so many days ago, which is in the spool as well."""
    with SpoolWriter(spool, f"n{value}") as writer:
        columns = {"ts_ns": [value], "node": [f"n{value}"], "device": ["cpu0"], "heat_celsius": [value]}
        writer.append_rows(HEAT, columns)
    [path] = spool.glob(f"*.n{value}.segment")
    made = f"{time.time_ns() - int(age_days * DAY_NS):020d}"
    path = path.rename(path.with_name(made + path.name[20:]))
    return Unpacked(path.name, path.read_bytes())


def taken(store: Store, one: Unpacked) -> Received:
    return receive(store, one, batch_id(one), rejected_bytes=0)


def forget(store: Store, days: int = REMEMBERED_DAYS) -> None:
    assert forget_batches(store, days, Ending()) == []


def remembered(store: Store) -> int:
    with store.catalog.engine.connect() as connection:
        return int(connection.execute(text("select count(*) from ingest_batches")).scalar_one())


def values_of(store: Store) -> list[int]:
    return sorted(store.lake.frame("select ts_ns from heat")["ts_ns"].tolist())


def test_a_repeat_is_one_until_it_is_forgotten_and_then_refused(store: Store, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    old, edge, fresh = (segment(spool, value, age) for value, age in ((1, 40.0), (2, 34.9), (3, 0.1)))
    assert [taken(store, one).fate for one in (old, edge, fresh)] == [Fate.STORED] * 3
    forget(store)
    assert remembered(store) == 2
    assert [taken(store, one).fate for one in (edge, fresh)] == [Fate.DUPLICATE] * 2
    with pytest.raises(
        InvalidInputError, match=rf"{old.name} was made at 20.*Z and may have been stored before: .*--ag"
    ):
        taken(store, old)
    with pytest.raises(ForgottenError):  # also one that was remembered a moment ago, when its sender began
        load_segment(store, old, Loaded())
    assert store_together(store, [Batch(one, batch_id(one)) for one in (old, edge)]) == {}
    assert values_of(store) == [1, 2, 3]
    with store.catalog.read() as session:
        assert session.ingested().batches == 3  # totals go on


def test_what_is_old_is_taken_as_long_as_nothing_of_its_time_was_forgotten(store: Store, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    first, older, later = (segment(spool, value, age) for value, age in ((1, 50.0), (2, 60.0), (3, 49.0)))
    taken(store, first)
    forget(store)
    assert taken(store, later).fate is Fate.STORED  # made after everything that is forgotten
    with pytest.raises(InvalidInputError, match="not remembered any more"):
        taken(store, older)
    forget(store)
    with pytest.raises(InvalidInputError, match="not remembered any more"):
        taken(store, later)


def test_a_spool_keeps_what_is_refused_until_it_is_forced(store: Store, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    taken(store, segment(spool, 1, 40.0))
    forget(store)
    segment(spool, 2, 41.0)
    loaded = load_spool(store, spool)
    assert (loaded.batches, len(loaded.problems), sealed_segments(spool)) == (0, 2, [])
    assert len(list(spool.glob("*.rejected"))) == 2
    (spool / "broken.rejected").write_text("no segment")
    again = load_spool(store, spool, again=True)
    assert (again.batches, again.problems) == (2, [])
    assert values_of(store) == [1, 2]  # the part of the first one has its name again
    assert [path.name for path in spool.glob("*.rejected")] == ["broken.rejected"]


def test_what_was_stored_in_part_stays_aside(store: Store, tmp_path: Path) -> None:
    with SpoolWriter(tmp_path / "spool", "n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [1], "node": ["n1"], "device": ["cpu0"], "heat_celsius": [1]})
        writer.append_record("nonsense", {})
    assert load_spool(store, tmp_path / "spool").batches == 1
    again = load_spool(store, tmp_path / "spool", again=True)
    assert (again, len(list((tmp_path / "spool").glob("*.rejected")))) == (Loaded(), 1)


def test_a_clock_that_is_ahead_is_remembered_for_longer_and_files_for_ever(store: Store, tmp_path: Path) -> None:
    ahead = segment(tmp_path / "spool", 1, -400.0)
    taken(store, ahead)
    with store.catalog.write() as session:
        session.add_batch("file", "jobs.csv", row_count=1, skipped=0)
        session.add_batches([NewBatch("request", "prometheus", 1, made_ns=0)], ())
    forget(store)
    assert (remembered(store), taken(store, ahead).fate) == (2, Fate.DUPLICATE)


def test_a_server_whose_clock_was_wrong_once_keeps_no_new_segment_out(store: Store, tmp_path: Path) -> None:
    taken(store, segment(tmp_path / "spool", 1, 0.5))
    with store.catalog.write() as session:
        assert session.batches.forget(time.time_ns() + 100 * DAY_NS, 10) == 1
    assert taken(store, segment(tmp_path / "spool", 2, 0.6)).fate is Fate.STORED


def test_two_servers_forget_in_bounded_transactions_while_others_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.api.housekeeping.BATCHES_AT_ONCE", 7)
    for number in range(100):
        with store.catalog.write() as session:
            session.add_batches([NewBatch(f"old{number}", "x", 1, made_ns=number // 2)], ())
    is_over = threading.Event()

    def write() -> int:
        for number in range(60):
            with store.catalog.write() as session:
                session.add_batches([NewBatch(f"new{number}", "x", 1, made_ns=time.time_ns())], ())
        is_over.set()
        return 60

    def tidy(_: int) -> None:
        while not is_over.is_set() or remembered(store) > 60:
            forget(store)

    with ThreadPoolExecutor(3) as pool:
        written = pool.submit(write)
        list(pool.map(tidy, range(2)))
    assert remembered(store) == written.result()
    with store.catalog.read() as session:
        assert (session.batches.forgotten_ns(), session.ingested().batches) == (49, 160)


def test_a_server_forgets_by_its_setting(store: Store, tmp_path: Path) -> None:
    for value, age in ((1, 3.0), (2, 1.5)):
        taken(store, segment(tmp_path / "spool", value, age))
    with housekeeping(store, pause_seconds=0.01, settings=ServerSettings(batch_days=2)):
        deadline = time.monotonic() + 30
        while remembered(store) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert remembered(store) == 1


def test_batches_of_before_have_their_time(tmp_path: Path, postgres_url: str) -> None:
    names = (
        "01700000000000000000-0123abcd.n1.segment",
        "09999999999999999999-0123abcd.n1.segment",
        "prometheus",
        "https://prometheus",
        "a.segment",
    )
    before = [
        {"batch_id": f"b{number}", "origin": name, "received_ns": 5, "rows": 1, "skipped": 0}
        for number, name in enumerate(names)
    ]
    for url in (sqlite_url(tmp_path / "catalog.sqlite"), postgres_url):
        at_revision(url, "0024", {"ingest_batches": before})
        catalog = Catalog(open_database(url))
        with catalog.engine.connect() as connection:
            made = connection.execute(text("select made_ns from ingest_batches order by batch_id")).scalars().all()
        assert made == [1_700_000_000_000_000_000, None, 5, None, None]
        catalog.close()


def test_the_time_is_that_of_the_name() -> None:
    assert made_in("00000000000000000012-0123abcd.n.1.segment") == 12
    assert made_in("99999999999999999999-0123abcd.n1.segment") == LAST_NS
    assert [made_in(name) for name in ("prometheus", "1.n1.segment", "1-0123abcd.n1.open")] == [None] * 3


@pytest.mark.parametrize("text", ["1", "0", "-3", "x", "2.5", "36501", "³"])
def test_another_number_of_days_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"CROSSWIND_BATCH_DAYS is .*, expected 2 to 36500 days"):
        days_of(text)
    assert (days_of(""), days_of("2")) == (35, 2)
