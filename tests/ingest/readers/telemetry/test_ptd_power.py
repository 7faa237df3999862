"""Readings of power meters; the recorded lines are the first of the example in MLCommons' power-dev."""

from pathlib import Path
from zoneinfo import ZoneInfo

from tests.ingest.trees import RECORDINGS

from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.ptd_power import PtdPowerReader

RECORDED = RECORDINGS / "ptd_power" / "spl.txt"


def read(path: Path) -> tuple[list[dict[str, object]], Report]:
    report = Report(str(path), "ptd_power")
    [table] = PtdPowerReader().read(path, report, Context("lab", ZoneInfo("America/New_York"), node="n1"))
    return table.to_pylist(), report


def test_readings_become_sensors() -> None:
    rows, report = read(RECORDED)
    assert {name: value for name, value in rows[0].items() if value is not None} == {
        "ts_ns": 1608736911_496_000_000,
        "node": "n1",
        "device": "ptd",
        "power_watts": 23.43,
        "voltage_volts": 228.37,
        "current_amperes": 0.20428,
        "reading_ratio": 0.5023,
    }
    assert [row["power_watts"] for row in rows] == [23.43, 33.52, 41.33]
    assert report.notes == [
        "3 rows with the mark 'testing-workload'",
        "time_zone: 3 times have no zone and were read as America/New_York",
    ]


def test_what_the_meter_could_not_read_is_missing_and_bad_lines_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "spl.txt"
    line = RECORDED.read_text().splitlines()[0]
    path.write_text(f"{line.replace('23.430000', 'nan')}\n{line.replace('12-23', '23-12')}\n{line[:60]}\n")
    rows, report = read(path)
    assert [row["power_watts"] for row in rows] == [None]
    assert [(skipped.line, skipped.reason.split(":")[0]) for skipped in report.quoted] == [
        (2, "Time '2020-23-12T10"),
        (3, "no reading"),
    ]
