"""A compaction of a bucket that is killed at any point: readers have each row once, and what it left is removed."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.lake.objects.store_of_objects import Faults, Proxied, asked, setting_of
from tests.data.lake.objects.test_mirror import HOUR, Beside, expected, merge, put, rows_of

from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.sweep import sweep
from crosswind.data.lake.survey import survey
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store

WORK = """
import os, signal, sys
from pathlib import Path
from crosswind.client.installed_store import open_store
from crosswind.data.catalog.lake.files import LakeFiles
from crosswind.data.lake.objects import mirror
from crosswind.settings import Settings

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def then_killed(work):
    return lambda *arguments: (work(*arguments), kill())

mirror.TURN_SECONDS, mirror.BEAT_SECONDS = 1.0, 0.3
point = sys.argv[1]
if point == "in its transaction":
    LakeFiles.replace = then_killed(LakeFiles.replace)
elif point == "after its transaction":
    mirror.Mirror.replace = then_killed(mirror.Mirror.replace)
elif point == "before the sweep":
    mirror.Mirror.sweep = kill
with open_store(Settings.from_environment()) as store:
"""
COMPACT = """
    from crosswind.data.lake.compaction import compact
    compact(store.lake, now_ns=400 * 86_400 * 10**9, settle_seconds=-1)
"""
POINTS = {  # in the process, or at a request of it, before or after it reached the store
    "manifest": ("PUT", "/_held-part-c", False),
    "manifest stored": ("PUT", "/_held-part-c", True),
    "file": ("PUT", "/part-c", False),
    "file stored": ("PUT", "/part-c", True),
    "in its transaction": None,
    "after its transaction": None,
    "before the sweep": None,
}
EVERY_DAY = ("file stored", "after its transaction")


@pytest.mark.parametrize(
    "point", [point if point in EVERY_DAY else pytest.param(point, marks=pytest.mark.thorough) for point in POINTS]
)
def test_a_compaction_that_is_killed_changes_no_answer_and_leaves_nothing(
    store: Store,
    another: Callable[[], Store],
    proxied: tuple[LakeAddress, Faults],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    put(store.lake, *range(6))
    address, faults = proxied
    readers, beside = [store.lake, another().lake], Beside()
    with beside.doing([], readers):
        killed(COMPACT, point, setting_of(address), database, tmp_path / "killed", faults)
        assert all(rows_of(lake) == expected(6) for lake in readers)
        time.sleep(1.1)  # until its turn is over
        merge(another().lake)
        assert all(rows_of(lake) == expected(6) for lake in readers)
    assert beside.problems == []
    sweep(store.catalog, Bucket(address), lists_all=lambda _: True, now_ns=time.time_ns() + 25 * HOUR)
    inventory = survey(store.lake).inventory
    assert inventory is not None
    assert (inventory.problems, inventory.replaced, inventory.unnamed) == ([], 0, 0)
    names = {re.sub(".*/", "", key)[:6] for key in raw_keys(address)}
    assert names == {".lake", "", "_held-", "_schem", "part-c"}
    assert len(raw_keys(address)) == 5  # one is that of the day's folder, which Arrow leaves
    assert rows_of(store.lake) == expected(6)


def killed(work: str, point: str, setting: str, database: str, home: Path, faults: Faults) -> None:
    """Let a process work until it is killed there; where the point is none of these, when such an object is stored."""
    environment = {"CROSSWIND_HOME": str(home), "CROSSWIND_DATABASE": database, "CROSSWIND_LAKE": setting}
    process = subprocess.Popen([sys.executable, "-c", WORK + work, point], env=environment)
    request = POINTS.get(point, ("PUT", point, True))

    def act(proxied: Proxied) -> bool:
        if request is None or process.poll() is not None:
            return False
        method, place, is_stored = request
        if proxied.method != method or place not in proxied.path:
            return False
        if is_stored:
            proxied.handler.forwarded(proxied.method, proxied.path, proxied.body)
        process.kill()
        process.wait()
        return proxied.cut_off()

    faults.act = act
    assert process.wait(60) == -9
    faults.act = lambda _: False


def raw_keys(address: LakeAddress) -> list[str]:
    """Return the keys as the store has them, those of folders too."""
    port = int(str(address.endpoint).rpartition(":")[2])
    return re.findall("<Key>(.*?)</Key>", asked(port, "GET", f"/{address.bucket}?list-type=2").decode())
