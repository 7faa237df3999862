from pathlib import Path

import pytest

from crosswind.data.schema.errors import ConflictError
from crosswind.ingest.lab.hosts.machine_lock import alone


def test_one_laboratory_at_a_time_is_at_work_on_a_machine(tmp_path: Path) -> None:
    lock = tmp_path / "crosswind-lab.lock"
    for _ in range(2):
        with alone(lock), pytest.raises(ConflictError, match=f"{lock}: another laboratory is at work on this machine"):
            alone(lock).__enter__()


def test_an_error_within_is_no_conflict_and_lets_the_next_one_in(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), alone(tmp_path / "lock"):
        raise BlockingIOError
    with alone(tmp_path / "lock"):
        pass


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        alone(tmp_path / "lock").__enter__()
    assert not (tmp_path / "precious").exists()
