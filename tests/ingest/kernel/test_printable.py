from crosswind.ingest.kernel.printable import printable


def test_what_can_be_printed_stays_as_it_is() -> None:
    assert printable("enp65s0f0 Größe".encode()) == "enp65s0f0 Größe"


def test_what_cannot_be_printed_is_escaped() -> None:
    assert printable(b"a\x00b\nc\xff\x1b[31m\xe2\x80\xae") == r"a\x00b\nc\xff\x1b[31m\u202e"


def test_a_text_without_end_is_cut() -> None:
    assert printable(b"x" * 100_000) == "x" * 200
