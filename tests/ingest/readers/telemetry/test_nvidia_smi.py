"""nvidia-smi --query-gpu; recorded on an H100, and published by users of a GTX 1050 and of a V100."""

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.telemetry.nvidia_smi import NvidiaSmiReader

RECORDED = RECORDINGS / "nvidia_smi"
BERLIN = Context("lab", ZoneInfo("Europe/Berlin"), node="n1")


def read(path: Path, context: Context = BERLIN) -> tuple[dict[str, list[dict[str, Any]]], Report]:
    """The rows of each set, without what is missing in them."""
    report = Report(str(path), "nvidia_smi")
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in NvidiaSmiReader().read(path, report, context):
        filled = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
        rows.setdefault(set_of(table.schema).name, []).extend(filled)
    return rows, report


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "gpu.csv"


def test_what_our_set_has_goes_there_and_the_rest_to_series() -> None:
    rows, report = read(RECORDED / "gtx1050.csv")
    assert rows["gpu"][0] == {
        "ts_ns": 1539169563_419_000_000,  # 13:06:03.419 in Berlin
        "node": "n1",
        "device": "00000000:01:00.0",
        "name": "GeForce GTX 1050",
        "pci_bus_id": "00000000:01:00.0",
        "driver_version": "396.45",
        "performance_state": 8,
        "temperature_celsius": 40,
        "utilization_ratio": 0,
        "memory_utilization_ratio": 0,
        "memory_total_bytes": 4040 * 2**20,
        "memory_used_bytes": 2 * 2**20,
        "memory_free_bytes": 4038 * 2**20,
    }
    assert [(row["name"], row["value"], row["labels"]) for row in rows["series"][:2]] == [
        ("pcie.link.gen.max", 3, '{"tool":"nvidia-smi"}'),
        ("pcie.link.gen.current", 1, '{"tool":"nvidia-smi"}'),
    ]
    assert report.notes == ["time_zone: 2 times have no zone and were read as Europe/Berlin"]


def test_five_readings_of_an_idle_h100_are_read() -> None:
    rows, _ = read(RECORDED / "h100.csv")
    assert len(rows["gpu"]) == 5
    assert rows["gpu"][0] == {
        "ts_ns": 1795715646_228_000_000,
        "node": "n1",
        "device": "GPU-5f5fa5ad-1111-2222-3333-444455556666",
        "name": "NVIDIA H100 80GB HBM3",
        "pci_bus_id": "00000000:00:06.0",
        "power_watts": 73_030,
        "utilization_ratio": 0,
        "memory_utilization_ratio": 0,
        "memory_used_bytes": 0,
        "temperature_celsius": 34,
        "sm_clock_hertz": 345,
    }


def test_a_gpu_is_its_uuid_where_that_was_requested(log: Path) -> None:
    log.write_text(
        "timestamp, index, uuid, power.draw [W], power.draw.instant [W], enforced.power.limit [W], power.limit [W], "
        "clocks.current.sm [MHz], clocks_event_reasons.active\n"
        "2026/01/02 03:04:05.678, 3, GPU-b6a9, 187.80 W, 190.10 W, 700.00 W, 700.00 W, 1980 MHz, 0x0000000000000004\n"
    )
    rows, _ = read(log)
    assert rows["gpu"] == [
        {
            "ts_ns": 1767319445_678_000_000,
            "node": "n1",
            "device": "GPU-b6a9",
            "index": 3,
            "power_watts": 187_800,  # mW, of which the set's scale makes watts
            "instant_power_watts": 190_100,
            "power_limit_watts": 700_000,
            "sm_clock_hertz": 1980,  # MHz
            "clocks_event_reasons": 4,
        }
    ]
    assert [(row["name"], row["value"], row["unit"]) for row in rows["series"]] == [("power.limit", 700, "W")]


def test_nounits_keeps_the_units_in_the_header(log: Path) -> None:
    log.write_text("timestamp, index, power.draw [W], memory.used [MiB]\n2026/01/02 03:04:05.678, 0, 15.21, 7\n")
    [row] = read(log)[0]["gpu"]
    assert (row["device"], row["power_watts"], row["memory_used_bytes"]) == ("gpu0", 15210, 7 * 2**20)


def test_what_is_not_there_is_missing_and_texts_are_reported(log: Path) -> None:
    log.write_text(
        "timestamp, index, fan.speed [%], power.draw [W], pstate, compute_mode\n"
        "2026/01/02 03:04:05.678, 0, [N/A], [Not Supported], N/A, Default\n"
    )
    rows, report = read(log)
    assert rows == {"gpu": [{"ts_ns": 1767319445_678_000_000, "node": "n1", "device": "gpu0", "index": 0}]}
    assert report.notes[-1] == "columns without numbers are left out: compute_mode"


def test_bad_rows_are_quoted_and_the_others_read(log: Path) -> None:
    header = "timestamp, index, power.draw [W], utilization.gpu [%]\n"
    log.write_text(
        f"{header}2026/01/02 03:04:05.678, 0, 15.21 W, 7 %\n"
        "2026/01/02 03:04:06.678, 0, 15,21 W, 7 %\n"
        "02.01.2026 03:04:06, 0, 15.21 W, 7 %\n"
        "2026/01/02 03:04:06.678, 0, 15.21 kW, 7 %\n"
        "2026/01/02 03:04:06.678, 0, 15.2121 W, 7 %\n"
        "2026/01/02 03:04:06.678, 0, 15.21 W, 99999999999999999999 %\n"
        f"{header}2026/01/02 03:04:07.678, 0, 15.21 W, 8 %\n"
    )
    rows, report = read(log)
    assert [row["utilization_ratio"] for row in rows["gpu"]] == [7, 8]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (3, "5 fields; expected 4"),
        (4, "timestamp '02.01.2026 03:04:06' is no time; expected YYYY/MM/DD HH:MM:SS.mmm"),
        (5, "power.draw: '15.21 kW' is no number of W"),
        (6, "power.draw: '15.2121' is finer than 1/1000 W"),
        (7, "utilization.gpu: '99999999999999999999' is no number of %"),
    ]


def test_a_number_that_no_column_holds_hinders_no_other_row(log: Path) -> None:
    log.write_text(
        "timestamp, index, memory.used [MiB]\n2026/01/02 03:04:05.678, 0, 7 MiB\n"
        "2026/01/02 03:04:06.678, 0, 999999999999999999 MiB\n"
    )
    rows, report = read(log)
    assert [row["memory_used_bytes"] for row in rows["gpu"]] == [7 * 2**20]
    assert report.quoted[0].reason == "memory.used: '999999999999999999' is more than memory_used_bytes can be"


def test_an_hour_that_comes_twice_is_reported(log: Path) -> None:
    log.write_text("timestamp, index, temperature.gpu\n2026/10/25 02:30:00.000, 0, 40\n")
    change = "come twice or never when clocks change in that zone; of two, the earlier was taken"
    assert read(log)[1].notes[-1] == f"1 times, 2026-10-25T02:30:00 first, {change}"


def test_rows_without_times_or_names_are_refused_with_what_to_ask_for(log: Path) -> None:
    log.write_text("index, temperature.gpu\n0, 40\n")
    with pytest.raises(MalformedError, match=r"line 1: no timestamp; ask for --query-gpu=timestamp,\.\.\."):
        read(log)
    log.write_text("2026/01/02 03:04:05.678, 0, 40\n")
    with pytest.raises(MalformedError, match="line 1: no header; leave noheader out of --format=csv"):
        read(log)


def test_rows_of_an_unnamed_node_are_reported(log: Path) -> None:
    log.write_text("timestamp, index, temperature.gpu\n2026/01/02 03:04:05.678, 0, 40\n")
    rows, report = read(log, Context("lab"))
    assert "node" not in rows["gpu"][0]
    assert report.notes[0] == "no row names its node: --node does"


def test_fields_in_camel_case_are_series(log: Path) -> None:
    log.write_text(
        "timestamp, index, power.draw [W], encoder.stats.sessionCount, encoder.stats.averageFps\n"
        "2026/05/29 10:00:00.000, 0, 61.25 W, 2, 30\n"
    )
    assert NvidiaSmiReader().recognises(log, log.read_bytes())
    rows, report = read(log)
    assert [(row["name"], row["value"]) for row in rows["series"]] == [
        ("encoder.stats.sessionCount", 2),
        ("encoder.stats.averageFps", 30),
    ]
    assert (rows["gpu"][0]["power_watts"], report.skipped) == (61250, 0)
