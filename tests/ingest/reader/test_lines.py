"""Lines of files that others wrote, and are still writing."""

import gzip
import json
from pathlib import Path

import pytest

from crosswind.ingest.reader import lines
from crosswind.ingest.reader.lines import LINE_LIMIT, blocks, lines_of, numbered_lines
from crosswind.ingest.reader.reader import Report


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.txt"


def read(path: Path) -> tuple[list[tuple[int, str]], Report]:
    report = Report(str(path), "test")
    return list(numbered_lines(path, report)), report


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_lines_have_their_numbers_however_much_is_read_at_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", size)
    file.write_bytes(b"\xef\xbb\xbfone\r\n\n  \nfour \xc3\xa4\n\xff\nsix\n")
    numbered, report = read(file)
    if size > 3:  # a byte order mark in pieces is no mark
        assert numbered[0] == (1, "one")
    assert numbered[1:] == [(4, "four ä"), (6, "six")]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (5, "not UTF-8: invalid start byte at byte 1")
    ]


def test_a_line_of_ten_million_characters_is_skipped_and_the_others_keep_their_numbers(file: Path) -> None:
    file.write_bytes(gzip.compress(b"one\n" + b"x" * 10_000_000 + b"\nthree\n"))
    numbered, report = read(file)
    assert numbered == [(1, "one"), (3, "three")]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [(2, f"longer than {LINE_LIMIT} bytes")]


def test_a_last_line_without_its_end_counts_where_it_shows_that_it_is_whole(file: Path) -> None:
    def is_whole(line: bytes) -> bool:
        return line.endswith(b"}") and isinstance(json.loads(line), dict)

    for last, expected in ((b'{"b": 2}', 2), (b'{"b": 2', 1)):
        file.write_bytes(b'{"a": 1}\n' + last)
        report = Report(str(file), "test")
        numbered = [line for block in blocks(file, report, is_whole=is_whole) for line in lines_of(block)]
        assert len(numbered) == expected
        assert report.skipped == 2 - expected
