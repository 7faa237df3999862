import errno
import fcntl
import math
import os
import threading
import time
from pathlib import Path

import pytest

from crosswind.data.files import NoLocksError, lock_file, published, take_lock


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_published_file_takes_the_place_of_the_one_before(tmp_path: Path, is_durable: bool) -> None:
    path = tmp_path / "answer.json"
    path.write_text("before")
    with published(path, is_durable=is_durable) as file:
        file.write(b"after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_within_leaves_what_was_there_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text("before")
    with pytest.raises(TypeError, match="str"), published(path) as file:
        file.writelines([b"half", "not bytes"])  # type: ignore[list-item]
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_take_its_name_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "answer.json" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match=r"answer\.json"), published(tmp_path / "answer.json") as file:
        file.write(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]


def test_a_lock_ends_with_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with lock_file(tmp_path / "lock") as fd, lock_file(tmp_path / "lock") as other:
            assert take_lock(fd)
            assert not take_lock(other)


@pytest.mark.parametrize("patience_seconds", [60.0, math.inf])
def test_the_patient_get_a_lock_once_it_is_free(tmp_path: Path, patience_seconds: float) -> None:
    with lock_file(tmp_path / "lock") as fd, lock_file(tmp_path / "lock") as holder:
        assert take_lock(holder)
        free = threading.Timer(0.1, lambda: fcntl.flock(holder, fcntl.LOCK_UN))
        free.start()
        assert take_lock(fd, patience_seconds)
        free.join()


def test_patience_ends(tmp_path: Path) -> None:
    with lock_file(tmp_path / "lock") as holder, lock_file(tmp_path / "lock") as fd:
        assert take_lock(holder)
        begin = time.monotonic()
        assert not take_lock(fd, 0.05)
        assert time.monotonic() - begin >= 0.05


def test_a_file_system_without_locks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with lock_file(tmp_path / "lock") as fd, pytest.raises(NoLocksError, match="its file system keeps no locks"):
        take_lock(fd)
