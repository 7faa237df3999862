import gzip
import json
from pathlib import Path

import pytest

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.json_items import LIMITS, Item, Limits, items

JOBS = [{"name": f'ü"]}}{number}', "steps": [number, {"none": None}]} for number in range(30)]
DOCUMENT = {"meta": {"list": [1, {"jobs": ["none of these"]}]}, "jobs": JOBS, "errors": []}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "document.json"


EACH_BLOCK = pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])  # so that every boundary falls somewhere


def read(path: Path, limits: Limits = LIMITS) -> tuple[list[Item], Report]:
    report = Report(str(path), "test")
    return list(items(path, report, "jobs", limits=limits)), report


@EACH_BLOCK
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_the_elements_come_one_by_one_with_their_lines(path: Path, indent: int | None, block_bytes: int) -> None:
    path.write_text(json.dumps(DOCUMENT, indent=indent, ensure_ascii=False))
    elements, report = read(path, Limits(block_bytes))
    assert [item.value for item in elements] == JOBS
    lines = path.read_text().split("\n")
    beginnings = [number for number, line in enumerate(lines, 1) if line == f"{' ' * 2 * (indent or 0)}{{"]
    assert [item.line for item in elements] == (beginnings if indent else [1] * 30)
    assert (report.skipped, report.quoted) == (0, [])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_and_gzip_change_nothing(path: Path, pack: type[bytes]) -> None:
    path.write_bytes(pack(b"\xef\xbb\xbf" + json.dumps(DOCUMENT).encode()))
    assert [item.value for item in read(path)[0]] == JOBS


def test_escapes_of_whole_characters_are_read(path: Path) -> None:
    path.write_text(r"""{"jobs": ["\ud83d\ude00 \u00e4", "\\ud800"]}""")
    assert [item.value for item in read(path)[0]] == ["😀 ä", r"\ud800"]


@EACH_BLOCK
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b'"na\x00me": 1', "no JSON: Invalid control character at"),
        (b'"name" 1', "no JSON: Expecting ':' delimiter"),
        (b'"name": NaN', "no JSON: NaN is no number"),
        (b'"name": "\xff\xfe"', "holds bytes that are not UTF-8"),
        (b'"na\\uDC00me": 1', "holds half a character: \\udc00"),
        (b'"name": ["\\ud83d\\ude00", {"a": "\\ud800x"}]', "holds half a character: \\ud800"),
        (b'"name": ' + b"[" * 100_000, "no JSON: nested too deep"),
        (b'"name": "it never ends', "no JSON: Invalid control character at"),
    ],
)
def test_a_broken_element_is_skipped_and_the_others_are_read(
    path: Path, damage: bytes, reason: str, block_bytes: int
) -> None:
    lines = json.dumps(DOCUMENT, indent=2, ensure_ascii=True).encode().split(b"\n")
    broken = next(number for number, line in enumerate(lines) if b"]}7" in line)
    lines[broken] = b"      " + damage + b","
    path.write_bytes(b"\n".join(lines))
    elements, report = read(path, Limits(block_bytes))
    assert [item.value for item in elements] == JOBS[:7] + JOBS[8:]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [(broken, reason)]


def test_where_the_document_breaks_off_is_said_and_what_comes_before_is_read(path: Path) -> None:
    text = json.dumps(DOCUMENT, indent=2)
    path.write_text(text[: text.index("]}9")])
    elements, report = read(path)
    assert [item.value for item in elements] == JOBS[:9]
    [skipped] = report.quoted
    assert skipped.text.startswith('{ "name": ')
    expected = "no JSON: Unterminated string starting at: what follows is not read (is it cut short, or still written?)"
    assert skipped.reason == expected


def test_damaged_gzip_gives_what_comes_before_the_damage(path: Path) -> None:
    content = json.dumps({"jobs": [{"number": number * 7919 % 10007} for number in range(9000)]}).encode()
    path.write_bytes(gzip.compress(content)[:-4000])
    elements, report = read(path)
    assert 100 < len(elements) < 9000
    assert [item.value for item in elements] == json.loads(content)["jobs"][: len(elements)]
    place = f"the compressed data is damaged or cut short at byte {path.stat().st_size} of the file"
    assert place in report.quoted[0].reason
    assert report.damage == report.quoted[0].reason


def test_an_element_larger_than_the_limit_is_skipped(path: Path) -> None:
    path.write_text(json.dumps({"jobs": [{"a": 1}, {"a": list(range(9000))}, {"a": 3}]}, indent=1))
    elements, report = read(path, Limits(64, item=1000))
    assert [item.value for item in elements] == [{"a": 1}, {"a": 3}]
    assert report.skipped == 1


@pytest.mark.parametrize("content", ["", "[]", "12", "\x7fELF", "dear diary"])
def test_what_is_no_object_is_refused(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(MalformedError, match="line 1: expected a JSON object"):
        read(path)


def test_a_missing_file_is_unavailable(path: Path) -> None:
    with pytest.raises(UnavailableError, match="No such file"):
        read(path)


def test_a_list_of_another_name_is_not_read(path: Path) -> None:
    path.write_text('{"nodes": [{"a": 1}], "jobs": {"a": 1}}')
    assert read(path)[0] == []
