"""An upkeep that is killed before any one of its changes of the disk has lost nothing and doubled nothing."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.data.lake.killed import killed_before_each_change
from tests.data.lake.retention.rolled_store import DAY, START, Values, every_statistic, fill, same

from crosswind.data.lake.parts import is_last_rows
from crosswind.data.lake.retention.upkeep import Upkeep, upkeep
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.store.store import Store

POLICY = "raw:1d,1h:forever"
LATER = START + 4 * DAY
IMPORTS = """
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.retention.upkeep import upkeep
from crosswind.data.schema.keeping import KeepPolicy
"""
ONCE = f"""
import sys
from pathlib import Path
{IMPORTS}
print("ready", flush=True)
upkeep(Lake(Path(sys.argv[1])), KeepPolicy.of(sys.argv[2]), now_ns=int(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a store with two days of samples."""
    home = tmp_path_factory.mktemp("killed") / "before"
    with Store.open(home) as store:
        fill(store.lake, days=range(2))
    return home


@pytest.fixture(scope="module")
def raw(before: Path) -> Values:
    with Store.open(before) as store:
        return every_statistic(store, by=("node",))


@pytest.fixture(scope="module")
def killed(before: Path) -> Iterator[list[Path]]:
    work = f'upkeep(Lake(copy / "lake"), KeepPolicy.of({POLICY!r}), now_ns={LATER})'
    with killed_before_each_change(before, IMPORTS, work, most=400) as homes:
        yield homes


def goes_on(home: Path, raw: Values) -> None:
    """Check that a lake says the same then, after its rows came again, and after another upkeep."""
    with Store.open(home) as store:
        same(every_statistic(store, by=("node",)), raw)
        fill(store.lake, days=range(2))  # nobody had said that they are stored
        assert upkeep(store.lake, KeepPolicy.of(POLICY), now_ns=LATER).problems == []
        assert upkeep(store.lake, KeepPolicy.of(POLICY), now_ns=LATER) == Upkeep()
        same(every_statistic(store, by=("node",)), raw)
        assert [path.name for path in store.lake.parts("meter") if not is_last_rows(path.name)] == []
        assert list((store.lake.root / ".writing").iterdir()) == []


@pytest.mark.thorough
def test_wherever_it_was_killed_it_goes_on(killed: list[Path], raw: Values) -> None:
    assert len(killed) > 20
    for home in killed:
        goes_on(home, raw)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_some_moment_it_goes_on(before: Path, raw: Values, tmp_path: Path, seed: int) -> None:
    home = tmp_path / "store"
    shutil.copytree(before, home)
    command = [sys.executable, "-c", ONCE, str(home / "lake"), POLICY, str(LATER)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.15))
        os.kill(process.pid, signal.SIGKILL)
    goes_on(home, raw)
