from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import COLLECTIVE
from crosswind.data.store.arrivals import clock_offsets, last_to_arrive, latecomers
from crosswind.data.store.store import Store

START_NS = 1_767_323_045_000_000_001  # too fine for a float
MS = 1_000_000
STEPS = 50
SKEW = {0: 0, 1: 300_000 * MS, 2: -7 * MS}  # five minutes ahead, and 7 ms behind
LATE = 2
RUN = Run("r", "toy", "lab", RunState.COMPLETED, 3, started_ns=START_NS, ended_ns=START_NS + 500 * MS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            session.runs.merge(RUN)
            for rank in SKEW:
                session.ranks.merge(Rank("r", rank, f"n{rank}", 100 + rank, START_NS))
        yield store


def keep(store: Store, rank: int, collectives: list[tuple[int, int, str, str, int, int | None]]) -> None:
    """Step, sequence, operation, group, arrival on the common clock and end of each."""
    columns = {
        "ts_ns": [arrival + SKEW[rank] for *_, arrival, _ in collectives],
        "run_id": ["r"] * len(collectives),
        "rank": [rank] * len(collectives),
        "step": [collective[0] for collective in collectives],
        "sequence": [collective[1] for collective in collectives],
        "duration_seconds": [None if end is None else end - arrival for *_, arrival, end in collectives],
        "size_bytes": [4] * len(collectives),
        "operation": [collective[2] for collective in collectives],
        "group": [collective[3] for collective in collectives],
    }
    store.lake.append(f"p{rank}", to_table(COLLECTIVE, columns))


def all_reduces(rank: int) -> list[tuple[int, int, str, str, int, int | None]]:
    """One in the middle of every step, to which the late rank comes 40 ms after the others."""
    begins = [START_NS + step * 100 * MS for step in range(STEPS)]
    comes = [begin + (50 * MS if rank == LATE else 10 * MS + rank * MS) for begin in begins]
    ends = [begin + 55 * MS + rank * 1000 for begin in begins]  # seen a microsecond later a rank
    return [(step, 0, "all_reduce", "world", comes[step], ends[step]) for step in range(STEPS)]


def test_clocks_minutes_apart_are_put_right_by_common_ends(store: Store) -> None:
    for rank in SKEW:
        keep(store, rank, all_reduces(rank))
    assert clock_offsets(store, "r") == {0: 0, 1: SKEW[1] + 1000, 2: SKEW[2] + 2000}
    with store.catalog.read() as session:
        assert [rank.clock_offset_ns for rank in session.ranks.of("r")] == [0, SKEW[1] + 1000, SKEW[2] + 2000]


def test_the_last_to_arrive_is_named_whatever_the_clocks_say(store: Store) -> None:
    for rank in SKEW:
        keep(store, rank, all_reduces(rank))
    arrivals = last_to_arrive(store, "r")
    assert arrivals["step"].tolist() == list(range(STEPS))
    assert set(arrivals["last_rank"]) == {LATE}
    assert (arrivals["ranks"] == len(SKEW)).all()
    assert arrivals["spread_seconds"].to_numpy() == pytest.approx(0.040, abs=1e-5)
    assert arrivals["late_seconds"].to_numpy() == pytest.approx(0.039, abs=1e-5)


def test_what_is_kept_of_an_ended_run_is_not_estimated_again(store: Store) -> None:
    with store.catalog.write() as session:
        for rank in SKEW:
            session.ranks.merge(Rank("r", rank, f"n{rank}", 100 + rank, START_NS, clock_offset_ns=rank))
    assert clock_offsets(store, "r") == {0: 0, 1: 1, 2: 2}


def test_ranks_without_a_common_group_are_joined_by_those_between(store: Store) -> None:
    pairs = {0: ("a",), 1: ("a", "b"), 2: ("b",)}
    for rank, groups in pairs.items():
        collectives = [
            (step, place, "all_reduce", group, START_NS + step * 100 * MS, START_NS + step * 100 * MS + 5 * MS)
            for step in range(STEPS)
            for place, group in enumerate(groups)
        ]
        keep(store, rank, collectives)
    assert clock_offsets(store, "r") == SKEW


def test_ends_that_ranks_see_at_different_times_say_nothing(store: Store) -> None:
    for rank in (0, 1):
        begins = [START_NS + step * 100 * MS for step in range(STEPS)]
        keep(store, rank, [(step, 0, "broadcast", "world", at, at + MS) for step, at in enumerate(begins)])
    assert clock_offsets(store, "r") == {}
    # as recorded: nothing says how the clocks stand
    assert (last_to_arrive(store, "r")["late_seconds"] > 299).all()


def test_a_run_without_collectives_has_nobody_last(store: Store) -> None:
    assert clock_offsets(store, "r") == {}
    assert last_to_arrive(store, "r").empty


def test_an_unknown_run_is_named(store: Store) -> None:
    with pytest.raises(NotFoundError, match="run 'x' is not in the catalog"):
        last_to_arrive(store, "x")


def test_the_rank_that_others_waited_for_leads_the_latecomers(store: Store) -> None:
    for rank in SKEW:
        on_time = [(step, 0, "barrier", "world", at, at + MS) for step, *_, at, _ in all_reduces(0)]
        keep(store, rank, on_time + [(step, 1, *rest) for step, _, *rest in all_reduces(rank)])
    [latecomer] = latecomers(store, "r").to_dict("records")
    assert (latecomer["rank"], latecomer["steps"], latecomer["share"]) == (LATE, STEPS, 1.0)
    assert latecomer["late_seconds"] == pytest.approx(0.039, abs=1e-5)


def test_nobody_is_late_where_nobody_waits(store: Store) -> None:
    for rank in (0, 1):
        begins = [START_NS + step * 100 * MS + rank * 50 * MS for step in range(STEPS)]
        keep(store, rank, [(step, 0, "transfer", "0>1", at, at + MS) for step, at in enumerate(begins)])
    assert latecomers(store, "r").empty


def test_a_run_without_collectives_has_no_latecomers(store: Store) -> None:
    assert latecomers(store, "r").empty
