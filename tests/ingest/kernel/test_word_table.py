import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.kernel.word_table import WordTable

FILE = b"total: 100 kB\nfree: 7 kB\nhuge: 3\nother 5\n"


def table() -> WordTable:
    return WordTable({b"huge:": "huge", b"other": "other"}, {b"total:": "total_bytes", b"gone:": "gone_bytes"})


def test_numbers_are_found_behind_their_words_and_what_is_not_there_is_missing() -> None:
    assert table().read(FILE, "f") == {"total_bytes": 100, "huge": 3, "other": 5}


def test_a_file_whose_words_have_moved_is_learnt_again() -> None:
    words = table()
    words.read(FILE, "f")
    assert words.read(b"new: 1 kB\n" + FILE, "f") == {"total_bytes": 100, "huge": 3, "other": 5}
    assert words.read(b"huge: 9\n", "f") == {"huge": 9}
    assert words.read(FILE + b"gone: 4 kB\n", "f") == {"huge": 3, "total_bytes": 100, "other": 5, "gone_bytes": 4}


def test_a_word_that_appears_behind_all_others_is_noticed_with_the_next_change_only() -> None:
    """The kernel adds no words while it runs; looking for them would cost as much as learning again."""
    words = table()
    words.read(FILE, "f")
    assert "gone_bytes" not in words.read(FILE + b"gone: 4 kB\n", "f")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"total:",
        b"\0\0\0",
        b"nothing 3",
        b"total: 100 MB\n",
        b"total: 100",
        b"total: x kB\n",
        b"total: -1 kB\n",
        b"huge: 1_0\n",
        b"huge: " + b"9" * 30,
    ],
)
def test_what_is_no_number_behind_its_word_is_malformed(content: bytes) -> None:
    learnt = table()
    learnt.read(FILE, "f")
    for words in (table(), learnt):
        with pytest.raises(MalformedError, match="/proc/f"):
            words.read(content, "/proc/f")
