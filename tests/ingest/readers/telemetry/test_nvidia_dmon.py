"""nvidia-smi dmon; recorded on an H100, and published by users of a driver of 2021 and of one of 2026."""

from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.nvidia_dmon import NvidiaDmonReader

RECORDED = RECORDINGS / "nvidia_dmon"
NAMES = "#Date       Time        gpu   pwr gtemp    sm\n"
UNITS = "#YYYYMMDD   HH:MM:SS    Idx     W     C     %\n"


def read(path: Path) -> tuple[list[dict[str, object]], list[dict[str, object]], Report]:
    """Rows of `gpu`, rows of `series`."""
    report = Report(str(path), "nvidia_dmon")
    gpu, series = NvidiaDmonReader().read(path, report, Context("lab", node="n1"))
    return gpu.to_pylist(), series.to_pylist(), report


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "dmon.txt"


def test_power_temperatures_and_memory_clock_are_ours_and_all_else_is_series() -> None:
    gpu, series, report = read(RECORDED / "two_gpus.txt")
    assert [(row["ts_ns"], row["device"], row["index"], row["power_watts"]) for row in gpu] == [
        (1780048285_000_000_000, "gpu0", 0, 15_000),  # mW
        (1780048285_000_000_000, "gpu1", 1, 5_000),
    ]
    assert [
        (row["temperature_celsius"], row["memory_temperature_celsius"], row["memory_clock_hertz"]) for row in gpu
    ] == [
        (27, None, 405),  # `-` is missing
        (28, None, 405),
    ]
    assert [(row["name"], row["value"], row["unit"]) for row in series if row["device"] == "gpu0"][6:10] == [
        ("pclk", 225, "MHz"),
        ("pviol", 0, "%"),
        ("tviol", 0, "bool"),
        ("fb", 2, "MB"),
    ]
    assert report.read == len(gpu) + len(series)


def test_an_idle_h100_is_read_for_three_seconds() -> None:
    gpu, _, _ = read(RECORDED / "h100.txt")
    assert [(row["power_watts"], row["temperature_celsius"], row["memory_temperature_celsius"]) for row in gpu] == [
        (73_000, 34, 36),
        (72_000, 34, 36),
        (72_000, 34, 36),
    ]


def test_the_header_comes_again_and_again(log: Path) -> None:
    row = " 20210102   19:12:31      0    37    19     5\n"
    log.write_text(f"{NAMES}{UNITS}{row}{NAMES}{UNITS}{row.replace(':31', ':32')}")
    gpu, series, _ = read(log)
    assert [row["ts_ns"] for row in gpu] == [1609614751_000_000_000, 1609614752_000_000_000]
    assert [row["value"] for row in series] == [5, 5]


def test_columns_set_apart_by_commas_are_understood(log: Path) -> None:
    log.write_text("#Date, Time, gpu, pwr, sm\n#YYYYMMDD, HH:MM:SS, Idx, W, %\n20210102, 19:12:31, 0, 37, 5\n")
    gpu, series, _ = read(log)
    assert (gpu[0]["power_watts"], series[0]["value"]) == (37_000, 5)


def test_bad_rows_are_quoted_and_the_others_read(log: Path) -> None:
    log.write_text(
        f"{NAMES}{UNITS} 20210102   19:12:31      0    37    19     5\n"
        " 20210102   19:12:32      0    37    19\n"
        " 2021-01-02 19:12:32      0    37    19     5\n"
        " 20210102   19:12:32      0    37W   19     5\n"
        "# by hand\n"
    )
    gpu, _, report = read(log)
    assert len(gpu) == 1
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (4, "5 fields; expected 6, each with its unit"),
        (5, "date '2021-01-02'; expected YYYYMMDD"),
        (6, "pwr '37W' is no number"),
        (7, "neither names nor units of columns"),
    ]


@pytest.mark.parametrize("names", ["# gpu   pwr gtemp", "#Time        gpu   pwr gtemp", "#Date       gpu   pwr gtemp"])
def test_rows_without_date_and_time_are_refused_with_how_to_get_them(log: Path, names: str) -> None:
    log.write_text(f"{names}\n# Idx     W     C\n    0    37    19\n")
    with pytest.raises(MalformedError, match="line 1: rows without date and time; record with nvidia-smi dmon -o DT"):
        read(log)
