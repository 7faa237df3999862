"""A store of objects that is busy, slow, cut off, lists late or refuses: nothing is lost, and errors say what it is."""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import free_port
from tests.data.lake.objects.store_of_objects import Faults, Proxied, address_of, asked
from tests.data.lake.objects.test_mirror import expected, merge, mirror_of, put, rows_of

from crosswind.data.lake.lake import to_table
from crosswind.data.lake.objects import bucket as bucket_module
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.sweep import sweep
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
MOVED = (
    b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; the region "
    b"'us-east-1' is wrong; expecting 'eu-west-2'</Message><Region>eu-west-2</Region></Error>"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def faulty(proxied: tuple[LakeAddress, Faults], home: Path) -> Iterator[tuple[Store, Faults]]:
    """A store behind the proxy."""
    address, faults = proxied
    with Store.open(home, lake=address) as opened:
        yield opened, faults


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_module, "STALLED_SECONDS", 1.0)
    monkeypatch.setattr(bucket_module, "PATIENCE_SECONDS", 2.0)


def at_random(fault: str) -> Callable[[Proxied], bool]:
    """Return what does a fault to a third of the requests."""
    chance = random.Random(7)
    return lambda request: chance.random() < 0.33 and bool(getattr(request, fault)())


@pytest.mark.parametrize("fault", ["busy", "cut_off", "half"])
def test_faults_of_the_store_cost_time_alone(faulty: tuple[Store, Faults], fault: str) -> None:
    store, faults = faulty
    faults.act = at_random(fault)
    put(store.lake, 0, 1)
    for path in store.lake.root.glob("set=*/**/*.parquet"):
        path.unlink()
    assert rows_of(store.lake) == expected(2)
    merge(store.lake)
    assert rows_of(store.lake) == expected(2)
    assert len(faults.log) > 1.1 * faults.passed


def test_a_connection_lost_in_mid_upload_leaves_nothing_that_counts(
    faulty: tuple[Store, Faults], impatient: None
) -> None:
    store, faults = faulty
    mirror_of(store)._bucket._patience_seconds = 1.0
    faults.act = lambda request: request.is_write and "part-" in request.path and request.cut_off()
    with pytest.raises(UnavailableError, match=r"object set=step/.*part-b0-0.parquet cannot be written"):
        put(store.lake, 0)
    assert store.lake.sets() == []
    faults.act = lambda _: False
    put(store.lake, 0)
    assert rows_of(store.lake) == expected(1)


def test_a_large_object_is_written_in_parts_or_not_at_all(
    faulty: tuple[Store, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, faults = faulty
    monkeypatch.setattr(bucket_module, "BYTES_A_SECOND", 1e9)
    large = tmp_path / "large"
    large.write_bytes(os.urandom(12 << 20))
    bucket = Bucket(mirror_of(store)._bucket.address, patience_seconds=1.0)
    faults.act = lambda request: "partNumber=2" in request.path and request.cut_off()
    with pytest.raises(UnavailableError, match="object large cannot be written"):
        bucket.put("large", large)
    faults.act = lambda _: False
    bucket = Bucket(mirror_of(store)._bucket.address)
    assert list(bucket.listing()) == []
    bucket.put("large", large)
    assert [one.key for one in bucket.listing()] == ["large"]


def test_a_store_that_stalls_is_waited_for_so_long(faulty: tuple[Store, Faults], impatient: None) -> None:
    store, faults = faulty
    put(store.lake, 0)
    for path in store.lake.root.glob("set=step/date=*/*/part-*"):
        path.unlink()
    mirror_of(store)._bucket._patience_seconds = 1.5

    def stall(request: Proxied) -> bool:
        if request.method == "GET" and "part-" in request.path:
            time.sleep(6)
        return False

    faults.act = stall
    begin = time.monotonic()
    with pytest.raises(UnavailableError, match=r"part-b0-0.parquet cannot be read"):
        rows_of(store.lake)
    assert time.monotonic() - begin < 4  # of 6 that a request takes


def test_a_slow_store_is_read(faulty: tuple[Store, Faults]) -> None:
    store, faults = faulty
    put(store.lake, 0)
    for path in store.lake.root.glob("set=*/**/*.parquet"):
        path.unlink()
    faults.act = lambda _: time.sleep(0.3) is not None
    assert rows_of(store.lake) == expected(1)


def test_nothing_depends_on_what_the_store_lists(faulty: tuple[Store, Faults]) -> None:
    store, faults = faulty
    nothing = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
    faults.act = lambda request: "list-type" in request.path and request.say(200, nothing)
    put(store.lake, 0, 1)
    merge(store.lake)
    bucket, later = Bucket(mirror_of(store)._bucket.address), time.time_ns() + 10**15
    sweep(store.catalog, bucket, lists_all=lambda _: True, now_ns=later)
    assert rows_of(store.lake) == expected(2)
    faults.act = lambda _: False
    sweep(store.catalog, bucket, lists_all=lambda _: True, now_ns=later)
    assert rows_of(store.lake) == expected(2)


def test_a_batch_is_refused_while_the_store_is_away_and_stored_later(
    faulty: tuple[Store, Faults], impatient: None
) -> None:
    store, faults = faulty
    put(store.lake, 0)
    mirror_of(store)._bucket._patience_seconds = 0.5
    faults.act = lambda request: request.busy()
    staged = store.lake.stage({"b1-0": to_table(STEP, {"ts_ns": [1], "run_id": ["r"]})})
    with pytest.raises(UnavailableError, match="cannot be written"):
        store.lake.publish(staged)
    assert rows_of(store.lake) == expected(1)  # as copied
    assert list((store.lake.root / ".writing").iterdir()) == []


def checked(address: LakeAddress, home: Path) -> str:
    with Store.open(home, lake=address) as store:
        mirror_of(store)._bucket._patience_seconds = 1.0
        with pytest.raises(UnavailableError) as raised:
            store.lake.storage.check()
    return str(raised.value)


def test_an_address_that_works_passes_the_check(address: LakeAddress, home: Path) -> None:
    with Store.open(home, lake=address) as store:
        store.lake.storage.check()


def test_a_missing_bucket_is_named(s3_port: int, home: Path) -> None:
    said = checked(address_of(s3_port, "no-such-bucket"), home)
    assert "s3://no-such-bucket/lake" in said
    assert "expected an S3 endpoint, its region, an existing bucket" in said


def test_lacking_rights_are_said_at_once(proxied: tuple[LakeAddress, Faults], home: Path) -> None:
    address, faults = proxied
    faults.act = lambda request: request.say(403, DENIED)
    said = checked(address, home)
    assert "ACCESS_DENIED" in said
    assert "rights to list, read, write and delete" in said
    assert len(faults.log) == 1


def test_a_wrong_region_is_said(proxied: tuple[LakeAddress, Faults], home: Path) -> None:
    address, faults = proxied
    faults.act = lambda request: request.say(400, MOVED)
    assert "expecting 'eu-west-2'" in checked(address, home)


def test_a_wrong_endpoint_is_said(home: Path) -> None:
    said = checked(address_of(free_port(), "bucket"), home)
    assert "127.0.0.1" in said
    assert "expected an S3 endpoint" in said


def test_the_endpoint_may_come_from_the_environment(s3_port: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(s3_port, "PUT", "/by-environment")
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3_port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with Store.open(home, lake=LakeAddress.of("s3://by-environment/some/where")) as store:
        store.lake.storage.check()
        put(store.lake, 0)
        assert rows_of(store.lake) == expected(1)
    assert b"some/where/set=step/" in asked(s3_port, "GET", "/by-environment?list-type=2")
