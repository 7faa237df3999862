"""An ingest into an object store that is killed at any point has lost nothing and doubled nothing."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.data.lake.killed import killed_before_each_change
from tests.data.lake.objects.store_of_objects import Faults, Proxied
from tests.ingest.load.test_together import FAN, NIC, NOON, sweep_rows

from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.sweep import MARK, sweep
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import SpoolWriter

DAYS = 25 * 3_600_000_000_000
ADDRESS = "s3://testing:testing@{0.bucket}/{1}?region=us-east-1&scheme=http&endpoint_override={0.endpoint}"
INGEST = """
import sys
from pathlib import Path
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
home, spool, address = sys.argv[1:]
with Store.open(Path(home), lake=LakeAddress.of(address)) as store:
    load_spool(store, Path(spool))
"""
IMPORTS = """
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
"""
OPENED = 'store = Store.open(copy.with_name(f"home-{{number}}"), lake=LakeAddress.of({!r}.format(number=number)))'


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """A spool with a segment of two sets."""
    folder = tmp_path / "spool"
    with SpoolWriter(folder, "agent.n1") as writer:
        for tick in range(3):
            writer.append_sweep([sweep_rows(one, "n1", NOON + tick, value) for one, value in ((FAN, 2.5), (NIC, 7))])
    return folder


def stored_once(store: Store, spool: Path) -> bool:
    """Return whether every row is there once, after all of it was sent again."""
    load_spool(store, spool)
    counts = [store.lake.frame(f"select count(*) as n from {name}").n.iloc[0] for name in store.lake.sets()]
    return counts == [6, 6]


def swept(store: Store, address: LakeAddress) -> tuple[int, int]:
    """Return how many objects are left after a day, and how many count."""
    bucket = Bucket(address)
    sweep(store.catalog, bucket, lists_all=lambda _: True, now_ns=time.time_ns() + DAYS)
    return sum(one.key != MARK for one in bucket.listing()), len(store.lake.storage.names())


@pytest.mark.parametrize("place", ["_schema", "part-"])
@pytest.mark.parametrize("is_before", [True, False])
def test_a_process_that_is_killed_while_it_uploads_is_taken_up(
    proxied: tuple[LakeAddress, Faults], tmp_path: Path, spool: Path, place: str, is_before: bool
) -> None:
    address, faults = proxied
    words = [sys.executable, "-c", INGEST, str(tmp_path / "home"), str(spool), ADDRESS.format(address, "lake")]
    process = subprocess.Popen(words)

    def kill(request: Proxied) -> bool:
        if process.poll() is not None or not (request.is_write and place in request.path):
            return False
        if not is_before:
            request.handler.forwarded(request.method, request.path, request.body)
        process.kill()
        process.wait()
        return request.cut_off()

    faults.act = kill
    assert process.wait(60) == -9
    faults.act = lambda _: False
    with Store.open(tmp_path / "home", lake=address) as store:
        assert store.lake.sets() == []
        assert stored_once(store, spool)
        left, counted = swept(store, address)
        assert left == counted == 4


@pytest.mark.thorough
def test_a_process_that_is_killed_before_any_change_of_the_disk_is_taken_up(
    address: LakeAddress, tmp_path: Path, spool: Path
) -> None:
    first = OPENED.format(ADDRESS.format(address, "lake-{number}"))
    work = "load_spool(store, copy); store.close()"
    with killed_before_each_change(spool, IMPORTS, work, most=400, first=first) as spools:
        assert len(spools) > 20
        for number, of_killed in enumerate(spools, start=1):
            of_this = LakeAddress(**{**vars(address), "prefix": f"lake-{number}"})
            shutil.rmtree(of_killed)
            shutil.copytree(spool, of_killed)  # what was stored comes again
            with Store.open(tmp_path / f"home-{number}", lake=of_this) as store:
                assert stored_once(store, of_killed), number
                left, counted = swept(store, of_this)
                assert left == counted == 4, number
