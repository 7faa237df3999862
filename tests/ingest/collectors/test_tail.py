import os
from pathlib import Path

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.collectors.tail import MAX_BYTES, MAX_LINE, Tail


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").write_text("old\n")
    return tmp_path / "log"


@pytest.fixture
def tail(log: Path) -> Tail:
    tail = Tail(str(log), from_start=False, has_header=False)
    assert tail.lines() == []
    return tail


def test_each_complete_line_is_given_once(log: Path, tail: Tail) -> None:
    append(log, "a\nb")
    assert tail.lines() == [b"a"]
    assert tail.lines() == []
    append(log, "c\n")
    assert tail.lines() == [b"bc"]


def test_a_line_begun_before_the_first_look_is_given_whole(log: Path) -> None:
    append(log, "beg")
    tail = Tail(str(log), from_start=False, has_header=False)
    assert tail.lines() == []
    append(log, "un\n")
    assert tail.lines() == [b"begun"]


def test_a_file_that_is_read_from_its_start_gives_all(log: Path) -> None:
    assert Tail(str(log), from_start=True, has_header=False).lines() == [b"old"]


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one_from_its_start(log: Path, tail: Tail) -> None:
    append(log, "last\nwithout end")
    log.rename(log.with_suffix(".1"))
    assert tail.lines() == [b"last"]
    log.write_text("first\n")
    assert tail.lines() == [b"without end", b"first"]
    append(log, "second\n")
    assert tail.lines() == [b"second"]


def test_a_truncated_file_is_read_from_its_start(log: Path, tail: Tail) -> None:
    append(log, "a longer line\n")
    tail.lines()
    log.write_text("n\n")
    assert tail.lines() == [b"n"]


def test_a_file_written_anew_and_longer_is_read_from_its_start(log: Path, tail: Tail) -> None:
    with log.open("r+") as file:
        file.write("new1\nnew2\n")
    assert tail.lines() == [b"new1", b"new2"]


def test_the_header_is_kept_apart_even_of_a_file_that_is_not_read_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,value\n1,2\n")
    tail = Tail(str(tmp_path / "a.csv"), from_start=False, has_header=True)
    assert tail.lines() == []
    append(tmp_path / "a.csv", "3,4\n")
    assert (tail.header, tail.lines()) == (b"time,value", [b"3,4"])


def test_a_file_is_waited_for_until_its_header_is_complete(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ti")
    tail = Tail(str(tmp_path / "a.csv"), from_start=False, has_header=True)
    assert (tail.lines(), tail.header) == ([], None)
    append(tmp_path / "a.csv", "me\n1\n")
    assert (tail.lines(), tail.header) == ([b"1"], b"time")


def test_a_line_too_long_for_any_reading_is_passed_over_and_counted(log: Path, tail: Tail) -> None:
    append(log, "x" * (MAX_LINE + 1) + "\nshort\n")
    assert tail.lines() == [b"short"]
    append(log, "y" * (MAX_BYTES + 7))
    assert [tail.lines(), tail.lines()] == [[], []]
    append(log, "y\nnext\n")
    assert tail.lines() == [b"next"]
    assert tail.long_lines == 2


def test_more_than_one_look_can_take_is_taken_by_the_next(log: Path, tail: Tail) -> None:
    lines = [str(number).rjust(999) for number in range(5000)]
    append(log, "\n".join(lines) + "\n")
    first, second = tail.lines(), tail.lines()
    assert 0 < len(first) < 5000
    assert [line.decode() for line in first + second] == lines


def test_a_file_that_was_deleted_is_unavailable_and_one_that_takes_its_place_is_read_from_its_start(
    log: Path, tail: Tail
) -> None:
    log.unlink()
    with pytest.raises(UnavailableError, match="log: No such file"):
        tail.lines()
    log.write_text("anew\n")
    assert tail.lines() == [b"anew"]


def test_a_pipe_or_folder_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UnavailableError, match=str(path)):
            Tail(str(path), from_start=True, has_header=False).lines()
