"""The planner beside a run: steps off the spool, plans for its ranks, within the budget."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from tests.ingest.capture.made_steps import STEP, Lag, made_steps

from crosswind.data.schema.steps import STEP as STEP_SET
from crosswind.ingest.capture.files import refuse
from crosswind.ingest.capture.following import Follower
from crosswind.ingest.capture.plan import FILE, Plan
from crosswind.ingest.capture.planner import Planner, planning
from crosswind.ingest.capture.steps import RankStep
from crosswind.ingest.capture.wanted import Budget, Wanted
from crosswind.ingest.spool.spool import SpoolWriter

RUN = "01M8"


def write(writer: SpoolWriter, rows: Iterable[RankStep], run_id: str = RUN) -> None:
    """Write steps as a rank does."""
    columns: dict[str, list[object]] = {column.name: [] for column in STEP_SET.columns}
    for row in rows:
        values = {"run_id": run_id, "rank": row.rank, "step": row.step, "ts_ns": time.time_ns()}
        values |= {"duration_seconds": round((row.own + row.waited) * 1e9), "comm_seconds": round(row.waited * 1e9)}
        for name, column in columns.items():
            column.append(values.get(name, 0))
    writer.append_rows(STEP_SET, columns)  # type: ignore[arg-type]


class Ranks:
    """The spool's files of a run's ranks."""

    def __init__(self, spool: Path, ranks: int, lag: Lag, steps: int = 2000) -> None:
        self.writers = [SpoolWriter(spool, f"{RUN}-rank{rank}") for rank in range(ranks)]
        self._rows = list(made_steps(ranks, steps, lag))
        self._count = ranks

    def go_on(self, begin: int, end: int) -> None:
        """Write so many steps of each."""
        for rank, writer in enumerate(self.writers):
            write(writer, self._rows[begin * self._count + rank : end * self._count : self._count])


Closing = TypeVar("Closing", Planner, Follower)


class Opened(Protocol):
    """Returns what it is given, which is closed after the test."""

    def __call__(self, thing: Closing) -> Closing: ...


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Close followers and planners after the test."""
    with ExitStack() as stack:

        def closing(thing: Closing) -> Closing:
            stack.callback(thing.close)
            return thing

        yield closing


def test_files_are_followed_while_they_grow_and_once_they_are_sealed_or_gone(tmp_path: Path, opened: Opened) -> None:
    ranks = Ranks(tmp_path, 2, lambda *_: 0.0)
    follower = opened(Follower(tmp_path, RUN))
    assert list(follower.news()) == []
    ranks.go_on(0, 3)
    assert [(row.rank, row.step) for _, row in follower.news()] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    ranks.go_on(3, 4)
    sealed = [writer.seal() for writer in ranks.writers]
    if sealed[0]:
        sealed[0].unlink()  # shipped meanwhile
    ranks.go_on(4, 5)
    assert sorted((row.rank, row.step) for _, row in follower.news()) == [(0, 3), (0, 4), (1, 3), (1, 4)]
    [(run_id, row), *_] = opened(Follower(tmp_path, RUN)).news()
    assert (run_id, row.own) == (RUN, pytest.approx(STEP, rel=0.2))


def test_a_frame_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path, opened: Opened) -> None:
    ranks = Ranks(tmp_path, 1, lambda *_: 0.0)
    ranks.go_on(0, 3)
    [path] = tmp_path.glob("*.open")
    content, follower = path.read_bytes(), opened(Follower(tmp_path, RUN))
    path.write_bytes(content[:-1])
    assert list(follower.news()) == []
    path.write_bytes(content)
    assert len(list(follower.news())) == 3


def test_a_garbled_file_ends_nothing_but_itself(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / f"1.{RUN}-rank7.segment").write_bytes(b"\xff" * 100)
    (tmp_path / f"1.{RUN}-rank8.segment").symlink_to("/etc/passwd")
    Ranks(tmp_path, 1, lambda *_: 0.0).go_on(0, 3)
    follower = opened(Follower(tmp_path, RUN))
    assert [row.rank for _ in range(3) for _, row in follower.news()] == [0, 0, 0]


def test_the_slow_rank_is_planned_far_enough_ahead_and_once(tmp_path: Path, opened: Opened) -> None:
    ranks = Ranks(tmp_path, 4, lambda rank, step: STEP if rank == 2 and step >= 100 else 0.0)
    planner = opened(Planner(tmp_path, RUN, Wanted(Budget(pause_seconds=60))))
    ranks.go_on(0, 50)
    planner.look(0)
    baseline = Plan.read(planner.folder)
    assert (len(baseline.ranks), baseline.last - baseline.first) == (1, 2)
    assert baseline.first >= 49 + 3 / STEP  # until every rank has read the plan
    refuse(planner.folder, f"rank{baseline.ranks[0]}.step{baseline.first}-{baseline.last}", "a test")
    ranks.go_on(50, 150)
    planner.look(10)
    assert Plan.read(planner.folder) == baseline  # it has just ended: a pause follows
    planner.look(71)
    plan = Plan.read(planner.folder)
    assert (2 in plan.ranks, len(plan.ranks), plan.size_bytes) == (True, 3, 200_000_000 // 3)
    assert planner.why[2, plan.first] == ("culprit", "others wait for a rank")


@pytest.mark.parametrize("budget", [Budget(captures=1, pause_seconds=0), Budget(size_bytes=400_000, pause_seconds=0)])
def test_nothing_is_planned_beyond_the_budget(tmp_path: Path, opened: Opened, budget: Budget) -> None:
    ranks = Ranks(tmp_path, 4, lambda rank, step: STEP if rank == 2 and step >= 100 else 0.0)
    planner = opened(Planner(tmp_path, RUN, Wanted(budget)))
    ranks.go_on(0, 50)
    planner.look(0)
    baseline = Plan.read(planner.folder)
    (planner.folder / f"rank{baseline.ranks[0]}.step{baseline.first}-{baseline.last}.json.gz").write_bytes(
        bytes(399_000)
    )
    ranks.go_on(50, 150)
    planner.look(1)
    planner.look(2)
    assert Plan.read(planner.folder) == baseline


def test_a_capture_of_which_nothing_is_heard_is_given_up(tmp_path: Path, opened: Opened) -> None:
    ranks = Ranks(tmp_path, 4, lambda rank, step: STEP if rank == 2 and step >= 100 else 0.0)
    planner = opened(Planner(tmp_path, RUN, Wanted(Budget(pause_seconds=0))))
    for end, now in ((50, 0), (150, 1), (151, 130)):
        ranks.go_on(0 if end == 50 else end - 100 if end == 150 else 150, end)
        planner.look(now)
    assert 2 in Plan.read(planner.folder).ranks


def test_ranks_asked_for_are_planned_before_the_program_starts(tmp_path: Path, opened: Opened) -> None:
    planner = opened(Planner(tmp_path, RUN, Wanted(Budget(), (0, 5), 20, 21)))
    assert Plan.read(planner.folder) == Plan(RUN, (0, 5), 20, 21, 100_000_000)
    planner.look(0)
    assert planner.why == {(0, 20): ("asked for", "by hand"), (5, 20): ("asked for", "by hand")}


def test_a_folder_that_cannot_be_made_is_no_reason_not_to_run(tmp_path: Path) -> None:
    (tmp_path / f"{RUN}.traces").write_text("in the way")
    with planning(tmp_path, RUN, Wanted(Budget(), (0,))) as planner:
        assert planner is None
    assert not (tmp_path / FILE).exists()
