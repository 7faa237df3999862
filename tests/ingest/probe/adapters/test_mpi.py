"""mpi4py in real training of two ranks under mpirun, of which one is late before its all-reduce."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.launched import mpirun
from tests.ingest.probe.adapters.trained import Trained
from tests.needs import program

LATE, VICTIM = 1, 0


@pytest.fixture(scope="module")
def training(train: Train) -> Trained:
    pytest.importorskip("mpi4py", reason="no mpi4py: pip install mpi4py")
    program("mpirun", "openmpi-bin")
    return train("mpi.py", launch=mpirun)


@pytest.mark.parametrize("rank", [LATE, VICTIM])
def test_each_call_is_there_with_its_bytes_and_its_group(training: Trained, rank: int) -> None:
    assert training.seen_by(rank, step=5) == [
        ("all_reduce", "world", 16 * 8),
        ("broadcast", "world", None),  # pickled objects and barriers have none
        ("transfer", "world 0>1", None),
        ("barrier", "world", None),
        ("all_reduce", "ranks 0,1", None),  # what has no name is called by its ranks
        ("all_reduce", "row 0,1", None),
        ("barrier", f"MPI_COMM_SELF {rank}", None),
    ]


def test_requests_end_when_they_are_waited_for(training: Trained) -> None:
    asked_for = training.collectives.query("operation == 'transfer' or (operation == 'barrier' and group == 'world')")
    ends = asked_for["duration_seconds"].dropna()
    assert len(ends) > 0.5 * len(asked_for)  # a wait that begins late does not tell
    assert (ends > 0).all()


def test_the_end_of_what_was_done_before_anybody_waited_is_unknown(training: Trained) -> None:
    own = training.collectives[training.collectives["group"].str.startswith("MPI_COMM_SELF")]
    assert own["duration_seconds"].isna().mean() > 0.9  # a wait that the kernel interrupts looks like one that waited


def test_the_late_rank_comes_last_to_the_all_reduce_and_its_victim_waits(training: Trained) -> None:
    assert training.share_last(LATE, "world", 0) >= 0.95
    assert training.median_ms(VICTIM, "comm") > 80 > training.median_ms(LATE, "comm")


def test_watched_or_not_it_is_the_same_communicator(training: Trained) -> None:
    assert all(rank["is_equal"] for rank in training.reports)
