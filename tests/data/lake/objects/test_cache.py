"""Copies of a bucket's objects: within their limit, for this user alone, sound, and shared by several processes."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.lake.objects.store_of_objects import Faults, setting_of
from tests.data.lake.objects.test_mirror import expected, merge, mirror_of, put, rows_of, touch_back

from crosswind.data.lake.objects import bucket as bucket_module
from crosswind.data.lake.objects import copies as copies_module
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store

Disk = namedtuple("Disk", ["total", "used", "free"])  # as shutil has it
READER = """
import sys
from pathlib import Path
from crosswind.client.installed_store import open_store
from crosswind.settings import Settings
for _ in range(int(sys.argv[1])):
    with open_store(Settings.from_environment()) as store:
        print(len(store.lake.frame("select distinct run_id, step, rank from step")))
        for path in sorted(store.lake.root.glob("set=step/date=*/*/part-*"))[::3]:
            path.unlink(missing_ok=True)
"""


def copies(store: Store) -> list[Path]:
    return sorted(store.lake.root.glob("set=step/date=*/*/part-*"))


def size_of_copies(store: Store) -> int:
    return sum(path.stat().st_size for path in store.lake.root.glob("set=*/**/*.parquet"))


@pytest.mark.parametrize("is_same_size", [True, False])
@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_copy_that_was_changed_is_fetched_again(
    store: Store, database: str, is_same_size: bool, is_noticed: bool
) -> None:
    put(store.lake, 0, 1)
    path = copies(store)[0]
    facts, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content if is_same_size else content[:-9])
    if is_noticed:
        assert rows_of(store.lake) == expected(2)
        return
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # a disk says nothing of it, and another process reads
    with Store.open(store.home, database=database, lake=store.address) as reader:
        assert rows_of(reader.lake) == expected(2)


def test_folders_and_files_are_their_owners_alone(store: Store, another: Callable[[], Store]) -> None:
    before = os.umask(0)
    try:
        put(store.lake, 0, 1)
        merge(store.lake)
        reader = another()
        assert rows_of(reader.lake) == expected(2)
    finally:
        os.umask(before)
    for root in (store.lake.root, reader.lake.root):
        modes = {path: path.stat().st_mode & 0o777 for path in [root, *root.rglob("*")]}
        assert {path for path, mode in modes.items() if mode & 0o077} == set()


def test_copies_that_ended_processes_left_count_too(store: Store, address: LakeAddress, database: str) -> None:
    put(store.lake, *range(16))
    for path in copies(store):
        touch_back(path)
    limit = size_of_copies(store) - 6 * copies(store)[0].stat().st_size
    small = LakeAddress(**{**vars(address), "cache_bytes": limit})
    with Store.open(store.home, database=database, lake=small) as later:
        assert len(later.lake.frame("select 1")) == 1
    assert len(copies(store)) > 0
    assert size_of_copies(store) <= limit
    assert rows_of(store.lake) == expected(16)


def test_a_full_disk_of_copies_is_said_and_makes_room(
    store: Store, another: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store.lake, *range(4))
    reader = another()
    assert len(reader.lake.parts("step")) == 4
    for path in copies(reader):
        touch_back(path)
    put(store.lake, 4)

    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(copies_module.Copies, "_move", full)
        with pytest.raises(UnavailableError, match=r"folder of copies .* takes no file of \d+ bytes: No space left"):
            rows_of(reader.lake)
    assert list((reader.lake.root / ".fetching").iterdir()) == []
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: Disk(10**9, 10**9, 0))
        reader.lake.storage.make_room()
    assert copies(reader) == []
    assert rows_of(reader.lake) == expected(5)


def test_a_disk_that_fills_while_an_object_comes_is_said_at_once(
    store: Store, another: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store.lake, 0)
    reader, begin = another(), time.monotonic()
    monkeypatch.setattr(bucket_module, "private", lambda *_: os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(UnavailableError, match=r"folder of copies .* takes no file of \d+ bytes: No space left"):
        rows_of(reader.lake)
    assert time.monotonic() - begin < 5  # it is not tried again and again
    monkeypatch.undo()
    assert rows_of(reader.lake) == expected(1)


def test_processes_share_the_copies(store: Store, address: LakeAddress, database: str, tmp_path: Path) -> None:
    put(store.lake, *range(6))
    home = tmp_path / "shared"
    environment = os.environ | {"CROSSWIND_HOME": str(home), "CROSSWIND_DATABASE": database}
    environment |= {"CROSSWIND_LAKE": setting_of(address)}
    command = [sys.executable, "-c", READER, "4"]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert (process.returncode, output.split()) == (0, ["60"] * 4)


def test_readers_at_once_fetch_an_object_once(
    store: Store, proxied: tuple[LakeAddress, Faults], database: str, tmp_path: Path
) -> None:
    put(store.lake, 0, 1)
    address, faults = proxied
    with Store.open(tmp_path / "reader", database=database, lake=address) as reader:
        threads = [threading.Thread(target=reader.lake.parts, args=("step",)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert mirror_of(reader).root.is_dir()
    assert len([line for line in faults.log if line.startswith("GET") and "part-" in line]) == 2
