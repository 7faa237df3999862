"""A compaction that is killed before any one of its changes of the disk has lost nothing and doubled nothing."""

from collections.abc import Iterator

import pandas as pd
import pytest
from tests.data.lake.killed import killed_before_each_change

from crosswind.data.lake import steps_summary
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.steps_summary import per_step
from crosswind.data.schema.steps import STEP

MINUTE = 60_000_000_000
LATER = 400 * 86_400_000_000_000
EVERYTHING = "select * from step order by run_id, step, rank"
IMPORTS = """
from crosswind.data.lake import steps_summary
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake
steps_summary.MANY_ROWS = 1
"""


@pytest.fixture(scope="module", autouse=True)
def every_run_is_summarised() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps_summary, "MANY_ROWS", 1)
        yield


def put(lake: Lake, minutes: range) -> None:
    for minute in minutes:
        rows = [(minute * 10 + step, rank) for step in range(10) for rank in range(3)]
        columns = {
            "ts_ns": [minute * MINUTE + step for step, _ in rows],
            "run_id": [f"r{rank % 2}" for _, rank in rows],
            "rank": [rank for _, rank in rows],
            "step": [step for step, _ in rows],
            "duration_seconds": [1000 * step + rank for step, rank in rows],
        }
        lake.append(f"b{minute}-0", to_table(STEP, columns))


def answers(lake: Lake) -> list[pd.DataFrame]:
    return [lake.frame(EVERYTHING), per_step(lake, "r0"), per_step(lake, "r1")]


def same(ones: list[pd.DataFrame], others: list[pd.DataFrame]) -> None:
    for one, other in zip(ones, others, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with a compacted file, parts of it that a reader kept from being removed, and newer parts."""
    lake = Lake(tmp_path_factory.mktemp("killed") / "before")
    put(lake, range(4))
    compact(lake, now_ns=LATER, settle_seconds=-1)
    put(lake, range(3, 8))
    return lake


@pytest.fixture(scope="module")
def killed(before: Lake) -> Iterator[list[Lake]]:
    work = f"compact(Lake(copy), now_ns={LATER}, settle_seconds=-1)"
    with killed_before_each_change(before.root, IMPORTS, work, most=200) as folders:
        yield [Lake(folder) for folder in folders]


@pytest.mark.thorough
def test_wherever_it_was_killed_every_answer_is_the_same_then_and_after_all_that_follows(
    before: Lake, killed: list[Lake]
) -> None:
    whole = answers(before)
    assert len(whole[0]) == 8 * 10 * 3
    assert len(killed) > 10
    for lake in killed:
        same(answers(lake), whole)
        put(lake, range(8))  # nobody had said that they are stored
        same(answers(lake), whole)
        compact(lake, now_ns=LATER, settle_seconds=-1)
        same(answers(lake), whole)
        assert len(list(lake.root.glob("set=step/date=*/*"))) == 2  # one file and what it was made of
        assert list((lake.root / ".writing").iterdir()) == []
        assert len(list(lake.root.glob("rollup=step/*"))) == 2  # of both runs
