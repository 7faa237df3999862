import time
from pathlib import Path

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.collectors.ipmi import IpmiCollector, power_of, sensors_of

# As ipmitool 1.8.19 printed the sensors of a simulated controller (ipmi_sim of OpenIPMI), but for the last three lines.
SENSORS = """\
CPU1 Temp        | 01h | ok  |  7.1 | 61 degrees C
Inlet, Temp      | 02h | ok  |  7.1 | 24 degrees C
FAN1             | 03h | ok  |  7.1 | 8400 RPM
P12V             | 04h | ok  |  7.1 | 11.97 Volts
PSU1 Input       | 05h | ok  |  7.1 | 412 Watts
PSU1 Current     | 06h | ok  |  7.1 | 1.80 Amps
FAN2 duty        | 07h | ok  |  7.1 | 35 percent
Absent Temp      | 08h | ns  |  7.1 | Disabled
Temp             | 0Eh | ok  |  3.1 | 51 degrees C
Temp             | 0Fh | cr  |  3.2 | 98 degrees C
SEL              | 72h | ns  |  7.1 | No Reading
"""
POWER = """
    Instantaneous power reading:                   176 Watts
    Minimum during sampling period:                  1 Watts
    Maximum during sampling period:               6560 Watts
    Average power reading over sample period:      113 Watts
    IPMI timestamp:                           Thu Dec  1 11:41:20 2022
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
"""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node with a controller, and with an ipmitool that prints what lies beside it."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "ipmi0").touch()
    (tmp_path / "sdr").write_text(SENSORS)
    (tmp_path / "dcmi").write_text(POWER)
    put_tool(tmp_path, f'cat "{tmp_path}/$1"')
    return tmp_path


def put_tool(node: Path, script: str) -> None:
    (node / "ipmitool").write_text(f"#!/bin/sh\n{script}\n")
    (node / "ipmitool").chmod(0o755)


def test_every_sensor_that_reads_is_a_device_in_base_units(node: Path) -> None:
    samples = IpmiCollector(node, str(node / "ipmitool")).read()
    assert {sample.device: dict(sample.values) for sample in samples} == {
        "CPU1 Temp": {"temperature_celsius": 61.0, "health": "ok"},
        "Inlet, Temp": {"temperature_celsius": 24.0, "health": "ok"},
        "FAN1": {"speed_rpm": 8400.0, "health": "ok"},
        "P12V": {"voltage_volts": 11.97, "health": "ok"},
        "PSU1 Input": {"power_watts": 412.0, "health": "ok"},
        "PSU1 Current": {"current_amperes": 1.8, "health": "ok"},
        "FAN2 duty": {"reading_ratio": pytest.approx(0.35), "health": "ok"},
        "Temp (0Eh)": {"temperature_celsius": 51.0, "health": "ok"},
        "Temp (0Fh)": {"temperature_celsius": 98.0, "health": "cr"},
        "dcmi": {"power_watts": 176.0},
    }


def test_without_a_controller_nothing_is_run(node: Path) -> None:
    (node / "dev" / "ipmi0").unlink()
    put_tool(node, f'touch "{node}/asked"')
    collector = IpmiCollector(node, str(node / "ipmitool"))
    assert not collector.available()
    with pytest.raises(UnavailableError, match="dev/ipmi0: no such device"):
        list(collector.read())
    assert not (node / "asked").exists()


def test_without_ipmitool_the_source_is_unavailable(node: Path) -> None:
    with pytest.raises(UnavailableError, match="nowhere/ipmitool: No such file"):
        list(IpmiCollector(node, "nowhere/ipmitool").read())


def test_a_refusal_is_reported_in_its_own_words(node: Path) -> None:
    put_tool(node, "echo 'Could not open device at /dev/ipmi0' >&2; exit 1")
    with pytest.raises(UnavailableError, match="no sensor reads: Could not open device at /dev/ipmi0"):
        list(IpmiCollector(node, str(node / "ipmitool")).read())


def test_what_was_printed_before_a_failure_counts(node: Path) -> None:
    put_tool(node, "echo 'FAN1 | 03h | ok | 7.1 | 8400 RPM'; exit 1")
    assert [sample.device for sample in IpmiCollector(node, str(node / "ipmitool")).read()] == ["FAN1"]


def test_a_controller_that_hangs_is_given_up_and_its_process_ended(node: Path) -> None:
    put_tool(node, f'echo $$ > "{node}/pid"; exec sleep 60')
    started = time.monotonic()
    with pytest.raises(UnavailableError, match=r"sdr elist full: no answer within 0.5 s"):
        list(IpmiCollector(node, str(node / "ipmitool"), sensors_seconds=0.5).read())
    assert time.monotonic() - started < 20
    assert not Path("/proc", (node / "pid").read_text().strip()).exists()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "garbage",
        "FAN1 | 03h | ok | 7.1 | 0x01",
        "FAN1 | 03h | ok | 7.1 | nan RPM",
        "FAN1 | 03h | ok | 7.1 | 84 unspecified",
        " | 03h | ok | 7.1 | 84 RPM",
        "F\x1bN | 03h | ok | 7.1 | 84 RPM",
    ],
)
def test_a_line_that_is_no_reading_is_left_out(line: str) -> None:
    assert list(sensors_of(f"{line}\n")) == []


def test_a_name_may_hold_a_bar() -> None:
    assert [sample.device for sample in sensors_of("A|B | 03h | ok | 7.1 | 84 RPM")] == ["A|B"]


@pytest.mark.parametrize(
    "report",
    [
        "",
        "DCMI request failed because: Invalid command (c1)",
        POWER.replace("activated", "deactivated"),
        POWER.replace("176", "0"),
        POWER.replace("176 Watts", "176 BTU"),
    ],
)
def test_a_power_that_is_not_measured_is_no_power(report: str) -> None:
    assert list(power_of(report)) == []
