"""dcgmi dmon; the recorded file has the columns of DCGM's own list, in the form in which dcgmi prints them."""

from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.dcgmi_dmon import DcgmiDmonReader

RECORDED = RECORDINGS / "dcgmi_dmon"


def read(path: Path) -> tuple[list[dict[str, object]], list[dict[str, object]], Report]:
    """Rows of `gpu`, rows of `series`."""
    report = Report(str(path), "dcgmi_dmon")
    gpu, series = DcgmiDmonReader().read(path, report, Context("lab", node="n1"))
    return gpu.to_pylist(), series.to_pylist(), report


def test_gpus_become_rows_and_other_entities_and_fields_series() -> None:
    gpu, series, report = read(RECORDED / "two_gpus.txt")
    assert [(row["ts_ns"], row["device"], row["temperature_celsius"], row["sm_clock_hertz"]) for row in gpu] == [
        (1780041086_104_000_000, "gpu0", 61, 1980),
        (1780041086_104_100_000, "gpu1", 30, 345),
    ]
    assert gpu[0]["energy_joules_total"] == 11002003004  # mJ
    assert [(row["device"], row["name"], row["value"], row["unit"]) for row in series] == [
        ("gpu0", "GPUTL", 98, None),
        ("gpu0", "POWER", 412.31, "W"),
        ("gpu0", "SMACT", 0.912, "ratio"),
        ("gpu1", "GPUTL", 0, None),
        ("gpu1", "POWER", 67.5, "W"),
        ("GPU-I 0", "SMACT", 0.455, "ratio"),
    ]
    assert (report.skipped, report.notes) == (0, [])


def test_times_may_be_seconds(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("1780041085.5 #Entity GPUTL TMPTR\n1780041085.5 ID\n1780041086.25 GPU 0 98 61\n")
    assert [row["ts_ns"] for row in read(path)[0]] == [1780041086_250_000_000]


def test_bad_rows_are_quoted_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text(
        "1780041085 #Entity GPUTL TMPTR\n1780041086 GPU 0 98 61\n1780041086 GPU 0 98\nnow GPU 0 98 61\n"
        "1780041086 GPU 0 98 hot\n1780041086 GPU 0 98 61.5\n"
    )
    gpu, _, report = read(path)
    assert len(gpu) == 1
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (3, "4 words; expected a time, an entity, its number and 2 values"),
        (4, "time 'now'; expected seconds since 1970 or YYYY-MM-DDTHH:MM:SS"),
        (5, "TMPTR 'hot' is no number"),
        (6, "'61.5' is finer than 1/1 C"),
    ]


def test_rows_without_times_are_refused_with_how_to_get_them(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("#Entity   GPUTL\nID\nGPU 0     98\n")
    with pytest.raises(MalformedError, match="line 1: dcgmi dmon writes no times; record with dcgmi dmon -e"):
        read(path)


def test_a_heading_of_a_text_is_no_header() -> None:
    reader = DcgmiDmonReader()
    for head in (b"# Entity A B\n", b"# Entity ID\n\nAn ID names it.\n", b"# Entity RELATIONSHIP MODEL\nwords\n"):
        assert not reader.recognises(RECORDED, head)
    assert reader.recognises(RECORDED, b"#Entity   GPUTL  TMPTR\nID            C\n")
    assert reader.recognises(RECORDED, b"1780041085 #Entity GPUTL TMPTR \r\n1780041086 GPU 0 98 61\r\n")
