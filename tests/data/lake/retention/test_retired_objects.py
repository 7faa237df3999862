"""Roll-ups and retirement of a lake in an object store, of both databases, by one server of several."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.lake.objects.store_of_objects import Faults, setting_of
from tests.data.lake.objects.test_compaction_killed import killed
from tests.data.lake.retention.rolled_store import DAY, START, every_statistic, fill, same

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.sweep import sweep
from crosswind.data.lake.retention.due import due
from crosswind.data.lake.retention.retirement import retire
from crosswind.data.lake.retention.rollups_of_day import roll_up
from crosswind.data.lake.retention.upkeep import Upkeep, upkeep
from crosswind.data.lake.survey import survey
from crosswind.data.lake.verification import verify
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store

POLICY = KeepPolicy.of("raw:1d,1m:30d,1h:forever")
LATER = START + 4 * DAY
UPKEEP = f"""
    from crosswind.data.lake.retention.upkeep import upkeep
    from crosswind.data.schema.keeping import KeepPolicy
    upkeep(store.lake, KeepPolicy.of("raw:1d,1h:forever"), now_ns={LATER})
"""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_raw_objects_give_way_to_roll_ups_for_every_server(store: Store, another: Callable[[], Store]) -> None:
    other = another()
    fill(store.lake, days=range(2))
    raw = every_statistic(other, by=("node",))
    done = upkeep(store.lake, POLICY, now_ns=LATER)
    assert (done.rolled_up, done.retired, done.problems) == (2, 2, [])
    same(every_statistic(other, by=("node",)), raw)
    same(every_statistic(another(), by=("node",)), raw)
    assert upkeep(other.lake, POLICY, now_ns=LATER) == Upkeep()
    fill(other.lake, days=range(1), nodes=("n3",))
    late = every_statistic(store, by=("node",), nodes=("n3",))
    assert upkeep(other.lake, POLICY, now_ns=LATER).retired == 1
    same(every_statistic(store, by=("node",), nodes=("n3",)), late)
    same(every_statistic(store, by=("node",), nodes=("n1", "n2")), raw)
    assert upkeep(store.lake, POLICY, now_ns=LATER + 60 * DAY).removed == 2
    same(every_statistic(other, by=("node",), nodes=("n1", "n2")), raw)
    assert verify(another().lake).problems == []
    sizes = [len(store.lake.storage.names()), len(every_object(store))]
    assert sizes[0] < sizes[1]


def every_object(store: Store) -> list[str]:
    with store.catalog.read() as session:
        return session.lake_files.retired_before(time.time_ns(), 1000) + [one.key for one in session.lake_files.live()]


def test_of_two_servers_one_does_it(store: Store, another: Callable[[], Store]) -> None:
    fill(store.lake, days=range(1))
    other = another()
    with store.lake.storage.changing(), pytest.raises(ConflictError, match="by another process"):
        upkeep(other.lake, POLICY, now_ns=LATER)
    assert upkeep(other.lake, POLICY, now_ns=LATER).retired == 1


@pytest.mark.parametrize(
    "point",
    [
        "-last.parquet",
        *(pytest.param(point, marks=pytest.mark.thorough) for point in ("in its transaction", "after its transaction")),
    ],
)
def test_a_retirement_that_is_killed_changes_no_answer_and_leaves_nothing(
    store: Store,
    another: Callable[[], Store],
    proxied: tuple[LakeAddress, Faults],
    database: str,
    tmp_path: Path,
    point: str,
) -> None:
    fill(store.lake, days=range(2))
    raw = every_statistic(store, by=("node",))
    address, faults = proxied
    killed(UPKEEP, point, setting_of(address), database, tmp_path / "killed", faults)
    same(every_statistic(another(), by=("node",)), raw)
    time.sleep(1.1)  # until its turn is over
    policy = KeepPolicy.of("raw:1d,1h:forever")
    done = upkeep(another().lake, policy, now_ns=LATER)
    assert (done.retired, done.problems) == (2, [])
    assert upkeep(store.lake, policy, now_ns=LATER) == Upkeep()
    same(every_statistic(store, by=("node",)), raw)
    sweep(store.catalog, Bucket(address), lists_all=lambda _: True, now_ns=time.time_ns() + 2 * DAY)
    inventory = survey(store.lake).inventory
    assert inventory is not None
    assert (inventory.problems, inventory.replaced, inventory.unnamed) == ([], 0, 0)


def test_who_has_lost_the_turn_retires_nothing_that_another_compacted(
    store: Store, another: Callable[[], Store]
) -> None:
    fill(store.lake, days=range(1))
    raw = every_statistic(store, by=("node",))
    [work] = due(store.lake, POLICY, LATER, [])
    roll_up(work.of, work.day, work.before, work.roll)
    compact(another().lake, now_ns=LATER, settle_seconds=-1)
    with pytest.raises(ConflictError, match=r"part-n1-1-0-0\.parquet was replaced by others meanwhile"):
        retire(work.of, work.day, list(work.retire))
    same(every_statistic(store, by=("node",)), raw)
    assert upkeep(store.lake, POLICY, now_ns=LATER).retired == 1
    same(every_statistic(store, by=("node",)), raw)
    assert list((store.lake.root / ".writing").iterdir()) == []
