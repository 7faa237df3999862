import json
import math
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.metric import Collector
from crosswind.ingest.collectors import made
from crosswind.ingest.collectors.facility import SOURCE
from crosswind.ingest.collectors.source import Host, Option, Options

NOON = 1795262400  # 2026-11-21T12:00:00Z
HEADER = "time,sensor,value,unit\n"


def following(path: Path, **options: Option) -> Collector:
    """The source, once it has looked at what was there before."""
    collector = made(SOURCE, Host(), Options("facility", {"path": str(path), **options}))
    list(collector.read())
    return collector


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def new(collector: Collector) -> list[tuple[str, dict[str, object]]]:
    rows = [(sample.device, dict(sample.values)) for sample in collector.read()]
    return [(device, values) for device, values in rows if not device.startswith("file ")]


def skipped(collector: Collector) -> dict[str, object]:
    [report] = [sample for sample in collector.read() if sample.device.startswith("file ")]
    return dict(report.values)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "sensors.csv").write_text(f"{HEADER}{NOON},old,1,W\n")
    return tmp_path / "sensors.csv"


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    (tmp_path / "mqtt.jsonl").touch()
    return tmp_path / "mqtt.jsonl"


def test_a_new_line_becomes_its_column_in_the_base_unit_with_its_own_time(table: Path) -> None:
    collector = following(table)
    append(table, f"{NOON},rack1/inlet,21.5,degC", f"{NOON}.25,cdu1/flow,90,L/min", f"{NOON + 1},pdu/3,1.2,MWh")
    assert new(collector) == [
        ("rack1/inlet", {"temperature_celsius": 21.5, "measured_ns": NOON * 10**9}),
        ("cdu1/flow", {"flow_liters_per_second": pytest.approx(1.5), "measured_ns": NOON * 10**9 + 250_000_000}),
        ("pdu/3", {"energy_joules_total": pytest.approx(4.32e9), "measured_ns": (NOON + 1) * 10**9}),
    ]
    assert new(collector) == []


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (212, "°F", ("temperature_celsius", 100.0)),
        (300, "K", ("temperature_celsius", 26.85)),
        (41, "%RH", ("humidity_ratio", 0.41)),
        (35, "%", ("reading_ratio", 0.35)),
        (1.08, "1", ("reading_ratio", 1.08)),
        (5, "mW", ("power_watts", 0.005)),
        (5, "MW", ("power_watts", 5e6)),
        (3.6, "m3/h", ("flow_liters_per_second", 1.0)),
        (2, "bar", ("pressure_pascals", 2e5)),
        (30, "psi", ("pressure_pascals", 206842.71879504)),
    ],
)
def test_units_are_distinguished_by_case(table: Path, value: float, unit: str, expected: tuple[str, float]) -> None:
    collector = following(table)
    append(table, f"{NOON},s,{value},{unit}")
    [(_, values)] = new(collector)
    assert values.pop("measured_ns") == NOON * 10**9
    assert values == {expected[0]: pytest.approx(expected[1])}


def test_a_reading_delivered_again_is_given_once(table: Path) -> None:
    collector = following(table)
    append(table, f"{NOON},a,1,W", f"{NOON},b,1,W", f"{NOON},a,1,W", f"{NOON},a,1000,mW")
    assert [device for device, _ in new(collector)] == ["a", "b"]
    append(table, f"{NOON},a,1,W", f"{NOON + 1},a,1,W")
    assert new(collector) == [("a", {"power_watts": 1.0, "measured_ns": (NOON + 1) * 10**9})]


def test_a_unit_comes_from_the_settings_where_the_line_says_none_and_is_never_guessed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("when;name;reading\n")
    columns = ["When", "name", "reading", "unit"]
    collector = following(tmp_path / "a.csv", columns=columns, units=["rack*/t=degC", "rack*=kW"])
    append(tmp_path / "a.csv", f"{NOON};rack1/t;21.5", f"{NOON};rack1;7", f"{NOON};pump;7")
    assert [(device, next(iter(values))) for device, values in new(collector)] == [
        ("rack1/t", "temperature_celsius"),
        ("rack1", "power_watts"),
    ]
    assert skipped(collector) == {
        "skipped_lines_total": 1,
        "health": "sensor 'pump': unit '' is not known; settings may say it",
    }


@pytest.mark.parametrize(
    "line",
    [
        f"{NOON},s,W",
        f"{NOON},s,1,W,5",
        f"{NOON},,1,W",
        f"{NOON},s,,W",
        f"{NOON},s,nan,W",
        f"{NOON},s,1e300,W",
        f"{NOON},s,0x10,W",
        f"{NOON},s,1,furlong",
        f"{NOON},s\x07,1,W",
        f'{NOON},"s,1,W',
        "2026-11-21T12:00:00,s,1,W",
        "2026-11-21,s,1,W",
        "1795262400000,s,1,W",
        "-1,s,1,W",
        "now,s,1,W",
        "9" * 500 + ",s,1,W",
    ],
)
def test_a_line_that_gives_no_reading_is_counted_and_the_next_is_read(table: Path, line: str) -> None:
    collector = following(table)
    append(table, line, f"{NOON},s,2,W")
    assert new(collector) == [("s", {"power_watts": 2.0, "measured_ns": NOON * 10**9})]
    assert skipped(collector)["skipped_lines_total"] == 1


@pytest.mark.parametrize(
    "text", ["2026-11-21T13:00:00+01:00", "2026-11-21 12:00:00Z", "2026-11-21T07:30:00.000000-0430"]
)
def test_a_time_with_its_offset_is_understood(table: Path, text: str) -> None:
    collector = following(table)
    append(table, f"{text},s,1,W")
    assert new(collector) == [("s", {"power_watts": 1.0, "measured_ns": NOON * 10**9})]


def message(payload: object, **more: object) -> str:
    envelope = {"tst": "2026-11-21T12:00:00.000000Z+0000", "topic": "dc/r1/t", "qos": 0, "retain": 0, "payloadlen": 4}
    return json.dumps({**envelope, "payload": payload, **more})


@pytest.mark.parametrize(
    "line",
    [
        message("21.5"),
        message(21.5),
        message("21.5", tst="2026-11-21T13:00:00.000000Z+0100"),
        message("21.5", tst=NOON),
        message({"value": 21.5, "unit": "degC"}),
        message('{"value": 21.5, "unit": "degC", "timestamp": 1795262400}', tst=NOON + 3, retain=1),
        json.dumps({"topic": "dc/r1/t", "payload": 21.5, "timestamp": NOON}),
    ],
)
def test_messages_are_read_as_mosquitto_and_gateways_write_them(messages: Path, line: str) -> None:
    collector = following(messages, units=["dc/*=degC"])
    append(messages, line)
    assert new(collector) == [("dc/r1/t", {"temperature_celsius": 21.5, "measured_ns": NOON * 10**9})]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "[" * 60_000,
        message(None),
        message("off"),
        message(True),
        message(math.nan),
        message({"unit": "degC"}),
        message("21.5", retain=1),
        message("21.5", topic=None),
        message("21.5", tst=None),
        '{"topic": "t", "tst": 1795262400, "payload": ' + "9" * 4000 + "}",
    ],
)
def test_a_message_that_gives_no_reading_is_counted_and_the_next_is_read(messages: Path, line: str) -> None:
    collector = following(messages, units=["*=degC"])
    append(messages, line, message("20"))
    assert [values["temperature_celsius"] for _, values in new(collector)] == [20.0]
    assert skipped(collector)["skipped_lines_total"] == 1


def test_every_file_of_a_folder_is_followed_and_a_later_one_is_read_from_its_start(table: Path, messages: Path) -> None:
    collector = following(table.parent, units=["dc/*=degC"])
    append(table, f"{NOON},a,1,W")
    append(messages, message("20"))
    (table.parent / "later.csv").write_text(f"{HEADER}{NOON},b,1,W\n")
    (table.parent / "notes.txt").write_text(f"{HEADER}{NOON},c,1,W\n")
    assert sorted(device for device, _ in new(collector)) == ["a", "b", "dc/r1/t"]


def test_a_file_renamed_within_its_folder_is_read_on_and_never_again(table: Path) -> None:
    collector = following(table.parent)
    append(table, f"{NOON},a,1,W")
    assert len(new(collector)) == 1
    append(table, *(f"{NOON + second},b,1,W" for second in range(20)))
    for old_name in ("sensors-old.csv", "zzz.csv"):
        table = table.rename(table.with_name(old_name))
        (table.parent / "sensors.csv").write_text(f"{HEADER}{NOON},{old_name},1,W\n")
        devices = [device for device, _ in new(collector)] + [device for device, _ in new(collector)]
        assert devices.count("b") == (20 if old_name == "sensors-old.csv" else 0)
        assert devices.count(old_name) == 1
        table = table.parent / "sensors.csv"


def test_one_file_without_its_columns_does_not_cost_the_others(table: Path) -> None:
    collector = following(table.parent)
    (table.parent / "a.csv").write_text("foo,bar\n1,2\n")
    append(table, f"{NOON},a,1,W")
    assert [device for device, _ in new(collector)] == ["a"]


def test_a_file_without_its_columns_is_malformed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("foo,bar\n1,2\n")
    with pytest.raises(MalformedError, match=r"a\.csv: expected columns time, sensor, value in the first line"):
        following(tmp_path / "a.csv")


def test_what_is_gone_is_unavailable_and_read_from_its_start_when_it_is_back(table: Path) -> None:
    collector = following(table)
    table.unlink()
    with pytest.raises(UnavailableError, match=r"sensors\.csv"):
        list(collector.read())
    table.write_text(f"{HEADER}{NOON},a,1,W\n")
    assert [device for device, _ in new(collector)] == ["a"]


@pytest.mark.parametrize("settings", [{"units": ["a=furlong"]}, {"units": ["degC"]}, {"columns": ["a"]}, {"path": 7}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Option]) -> None:
    with pytest.raises(InvalidInputError, match=r"sources\.facility"):
        made(SOURCE, Host(), Options("facility", {"path": "/x", **settings}))


def test_without_a_path_the_source_is_unavailable() -> None:
    collector = made(SOURCE, Host(), Options("facility"))
    assert not collector.available()
    with pytest.raises(UnavailableError, match=r"sources\.facility\.path: not set"):
        list(collector.read())
