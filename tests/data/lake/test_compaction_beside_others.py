"""Batches that arrive and queries that run while parts are compacted: every answer is whole, and nothing is doubled."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.schema.metric import Column, Kind, MetricSet

MINUTE = 60_000_000_000
LATER = 400 * 86_400_000_000_000
BATCHES, ROWS = 100, 25
LINK = MetricSet("link", "a link", (Column("ts_ns", "time", Kind.KEY), Column("number", "of the batch")))


def put(lake: Lake, number: int) -> None:
    times = [number * MINUTE + row for row in range(ROWS)]
    lake.append(f"b{number}", to_table(LINK, {"ts_ns": times, "number": [number] * ROWS}))


@pytest.mark.thorough
def test_every_answer_is_whole_while_batches_come_twice_and_parts_are_replaced(tmp_path: Path) -> None:
    lake, over, stored = Lake(tmp_path / "lake"), threading.Event(), [0]
    put(lake, 0)

    def write() -> None:
        for number in range(1, BATCHES):
            put(lake, number)
            stored[0] = number
            put(lake, number // 2)  # as a sender does who was not answered
        over.set()

    def keep_compacting() -> int:
        rows, is_last = 0, False
        while not is_last:
            is_last = over.is_set()
            rows += compact(Lake(lake.root), now_ns=LATER, settle_seconds=-1).rows
        return rows

    def keep_reading() -> int:
        looks, is_last = 0, False
        while not is_last:
            is_last, least = over.is_set(), stored[0]
            counted = lake.frame("select number, count(*) as rows from link group by number order by number")
            assert counted["rows"].tolist() == [ROWS] * len(counted)
            assert counted["number"].tolist() == list(range(len(counted)))
            assert least < len(counted) <= BATCHES
            looks += 1
        return looks

    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(task) for task in (write, keep_compacting, keep_reading, keep_reading)]
    _, rows, *looks = (future.result() for future in work)
    assert rows
    assert all(looks)
    compact(lake, now_ns=LATER, settle_seconds=-1)
    assert lake.frame("select count(*) as rows from link")["rows"].tolist() == [BATCHES * ROWS]


# The other one comes when the first has read the parts and begins to write; it does not see that one's lock.
UNSEEN = """
import sys
from pathlib import Path
from crosswind.data.lake.compaction import compact
from crosswind.data.schema.errors import ConflictError
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.locks import COMPACTING
from tests.data.lake.test_compaction_beside_others import LATER, put
lake, came = Lake(Path(sys.argv[1])), []

def other(event, arguments):
    if event == "open" and "part-c" in str(arguments[0]) and not came:
        came.append(True)
        (lake.root / COMPACTING).unlink()
        put(lake, 10)
        compact(Lake(lake.root), now_ns=LATER, settle_seconds=-1)

sys.addaudithook(other)
try:
    compact(lake, now_ns=LATER, settle_seconds=-1)
except ConflictError as error:
    print(error)
"""


def test_who_compacts_parts_that_another_has_compacted_meanwhile_stops(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for number in range(10):
        put(lake, number)
    command = [sys.executable, "-c", UNSEEN, str(lake.root)]
    root = Path(__file__).parents[3]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, cwd=root).stdout
    assert said.endswith("part-b0.parquet was compacted by another process meanwhile\n")
    assert list((lake.root / ".writing").iterdir()) == []
    for _ in range(2):
        assert lake.frame("select count(*) as rows from link")["rows"].tolist() == [11 * ROWS]
        compact(lake, now_ns=LATER, settle_seconds=-1)
