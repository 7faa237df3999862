"""Power in MLPerf Training; the recorded lines are of a submission of v4.0 (SMC, one node of 8 H100, BERT, AC)."""

from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.telemetry.mlperf_power import MlperfPowerReader

RECORDED = RECORDINGS / "mlperf_power" / "node_0.txt"
START = '{"time_ms": 1715341078316, "key": "power_measurement_start", "value": null, "metadata": {}}'


def read(path: Path, node: str = "") -> tuple[list[tuple[object, ...]], Report]:
    """Time, node, device and watts of each row."""
    report = Report(str(path), "mlperf_power")
    tables = list(MlperfPowerReader().read(path, report, Context("lab", node=node)))
    rows = [row for table in tables for row in table.to_pylist()]
    return [tuple(row[name] for name in ("ts_ns", "node", "device", "power_watts")) for row in rows], report


def test_readings_are_rows_of_the_node_that_the_file_is_named_after() -> None:
    rows, report = read(RECORDED)
    assert rows == [
        (1715341080_337_000_000, "node_0", "power", 2090),
        (1715341082_342_000_000, "node_0", "power", 2103),
        (1715341084_332_000_000, "node_0", "power", 2079),
    ]
    assert (report.skipped, report.notes) == (0, [])
    assert read(RECORDED, "n7")[0][0][1] == "n7"


def test_it_is_distinguished_from_a_result_log() -> None:
    assert reader_for(RECORDED).name == "mlperf_power"


def test_host_kind_and_efficiency_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "sw_0.txt"
    path.write_text(
        f":::MLLOG {START}\n"
        ':::MLLOG {"time_ms": 1, "key": "conversion_eff", "value": 0.94, "metadata": {"measurement_type": "DC"}}\n'
        ':::MLLOG {"time_ms": 1715341080337, "key": "power_reading", "value": 2090.5, "metadata": {"host": "n1"}}\n'
        ':::MLLOG {"time_ms": 1715341080338, "key": "interconnect_power_est", "value": 700, "metadata": {}}\n'
    )
    rows, report = read(path)
    assert rows == [
        (1715341080_337_000_000, "n1", "power DC", 2090.5),
        (1715341080_338_000_000, "sw_0", "interconnect DC", 700),
    ]
    assert report.notes == ["readings are as given, not times the efficiency of conversion 0.94"]


def test_bad_lines_are_quoted_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "meter.txt"
    good = ':::MLLOG {"time_ms": 1715341080337, "key": "power_reading", "value": 2090, "metadata": ""}\n'
    path.write_text(
        f":::MLLOG {START}\n{good}{good.replace('2090', 'null')}{good.replace('1715341080337', '17')}{good[:40]}\nok\n"
    )
    rows, report = read(path)
    assert rows == [(1715341080_337_000_000, None, "power", 2090)]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (3, "power_reading: None is no number of watts"),
        (4, "time_ms 17 is not between 2001 and 2262"),
        (5, "no event: expected :::MLLOG {...}"),
        (6, "no event: expected :::MLLOG {...}"),
    ]
    assert report.notes == ["no row names its node: --node does"]


@pytest.mark.parametrize("value", ["true", "1e999", "NaN", '"2090"'])
def test_what_is_no_number_is_no_power(tmp_path: Path, value: str) -> None:
    path = tmp_path / "node_1.txt"
    path.write_text(f':::MLLOG {{"time_ms": 1715341080337, "key": "power_reading", "value": {value}}}\n')
    rows, report = read(path)
    assert (rows, report.skipped) == ([], 1)


@pytest.mark.parametrize("value", ["1" + 400 * "0", "-1" + 400 * "0", "1e999", "true"])
def test_a_value_that_is_no_double_is_quoted(tmp_path: Path, value: str) -> None:
    path = tmp_path / "node_0.txt"
    event = '{"time_ms": 1715341078316, "key": "power_reading", "value": VALUE, "metadata": {}}'
    path.write_text(f":::MLLOG {event.replace('VALUE', value)}\n:::MLLOG {event.replace('VALUE', '5')}\n")
    rows, report = read(path)
    assert [row[3] for row in rows] == [5]
    assert "is no number of watts" in report.quoted[0].reason
