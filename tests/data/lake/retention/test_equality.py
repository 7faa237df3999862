"""Roll-ups say what raw rows say, whichever days they stand for, and whatever counters did."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.data.lake.retention.rolled_store import DAY, DAYS, HOUR, SECOND, START, Values, every_statistic, fill, same

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.retention.upkeep import upkeep
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.store.store import Store

OFTEN = 120 * SECOND  # so that a series has a sample in the five minutes before any time
ROLLED = "raw:forever,1m:forever,10m:forever,1h:forever"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def kept(store: Store, text: str, days: float) -> None:
    """Apply a policy so many days after the first sample."""
    done = upkeep(store.lake, KeepPolicy.of(text), now_ns=START + int(days * DAY))
    assert done.problems == []


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3))])
@pytest.mark.parametrize("retired", [0, 1, DAYS])
def test_whatever_was_retired_the_answers_are_those_of_raw_rows(store: Store, seed: int, retired: int) -> None:
    fill(store.lake, seed, apart_ns=OFTEN)
    raw = every_statistic(store)
    assert sum(value is not None for values in raw.values() for value in values) > 3000
    kept(store, ROLLED, DAYS + 1)
    same(every_statistic(store), raw)  # of roll-ups, as they are coarse enough
    kept(store, "raw:1d,1m:forever,1h:forever", retired + 1.5)
    lasting = store.lake.root.glob("set=meter/date=*/*-last.parquet")
    assert len(list(lasting)) == retired
    same(every_statistic(store), raw)
    same(every_statistic(store, from_ns=START + 5 * HOUR, to_ns=START + 60 * HOUR, by=("node",)), of_part(store, seed))


def of_part(store: Store, seed: int) -> Values:
    """Return what raw rows say of a part of the time."""
    with Store.open(store.home.parent / "raw") as raw:
        fill(raw.lake, seed, apart_ns=OFTEN)
        return every_statistic(raw, from_ns=START + 5 * HOUR, to_ns=START + 60 * HOUR, by=("node",))


def test_compacted_days_are_rolled_up_alike(store: Store) -> None:
    fill(store.lake)
    raw = every_statistic(store)
    kept(store, ROLLED, DAYS + 1)
    compact(store.lake, now_ns=START + 10 * DAY, settle_seconds=-1)
    same(every_statistic(store), raw)
    kept(store, "raw:1d,10m:forever", DAYS + 5)
    same(every_statistic(store), raw)
    assert compact(store.lake, now_ns=START + 20 * DAY, settle_seconds=-1).rows == 0
