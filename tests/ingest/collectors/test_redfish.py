import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, MalformedError, ProjectError, UnavailableError
from crosswind.ingest.collectors import made
from crosswind.ingest.collectors.redfish import SOURCE, RedfishCollector
from crosswind.ingest.collectors.redfish_client import Access
from crosswind.ingest.collectors.source import Host, Options

CHASSIS = "/redfish/v1/Chassis"
Resources = dict[str, object]


def links(*paths: str) -> dict[str, object]:
    return {"Members": [{"@odata.id": path} for path in paths]}


def sensor(identity: str, kind: str, units: str, reading: object, **more: object) -> dict[str, object]:
    return {
        "@odata.type": "#Sensor.v1_2_0.Sensor",
        "Id": identity,
        "Name": f"Sensor {identity}",
        "ReadingType": kind,
        "ReadingUnits": units,
        "Reading": reading,
        "Status": {"State": "Enabled", "Health": "OK"},
        **more,
    }


# Shaped as in DMTF's schemas of EnvironmentMetrics 1.5, Sensor 1.11, Power 1.7 and Thermal 1.7.
SENSORS = [
    sensor("CPU1Temp", "Temperature", "Cel", 37, ReadingTime="2026-11-21T15:00:00.5Z"),
    sensor("Fan1", "Rotational", "{rev}/min", 8460),
    sensor("CDUFlow", "LiquidFlowLPM", "L/min", 90),
    sensor("Loop", "PressurekPa", "kPa", 210.5),
    sensor("Energy", "EnergykWh", "kW.h", 2.5),
    sensor("Duty", "Percent", "%", 35),
    sensor("CPU2Temp", "Temperature", "Cel", None, Status={"State": "Absent"}),
    sensor("CPU3Temp", "Temperature", "Cel", 0, Status={"State": "Absent"}),
    sensor("Odd", "Temperature", "[degF]", 98),
    sensor("Level", "LiquidLevel", "cm", 12),
]
NEWER: Resources = {
    CHASSIS: links(f"{CHASSIS}/1U"),
    f"{CHASSIS}/1U": {
        "EnvironmentMetrics": {"@odata.id": f"{CHASSIS}/1U/EnvironmentMetrics"},
        "Sensors": {"@odata.id": f"{CHASSIS}/1U/Sensors"},
        "Power": {"@odata.id": f"{CHASSIS}/1U/Power"},
    },
    f"{CHASSIS}/1U/EnvironmentMetrics": {
        "TemperatureCelsius": {"DataSourceUri": f"{CHASSIS}/1U/Sensors/AmbientTemp", "Reading": 22.5},
        "HumidityPercent": {"Reading": 41},
        "PowerWatts": {"Reading": 374, "ApparentVA": 394.1},
        "EnergykWh": {"Reading": 1000},
        "EnergyJoules": {"Reading": None},
    },
    f"{CHASSIS}/1U/Sensors": links(*(f"{CHASSIS}/1U/Sensors/{reading['Id']}" for reading in SENSORS)),
    **{f"{CHASSIS}/1U/Sensors/{reading['Id']}": reading for reading in SENSORS},
}
OLDER: Resources = {
    CHASSIS: links(f"{CHASSIS}/1U"),
    f"{CHASSIS}/1U": {
        "Power": {"@odata.id": f"{CHASSIS}/1U/Power"},
        "Thermal": {"@odata.id": f"{CHASSIS}/1U/Thermal"},
    },
    f"{CHASSIS}/1U/Power": {
        "PowerControl": [{"MemberId": "0", "Name": "System Input Power", "PowerConsumedWatts": 344}],
        "PowerSupplies": [
            {
                "MemberId": "0",
                "Name": "Bay",
                "PowerInputWatts": 180,
                "Status": {"State": "Enabled", "Health": "Warning"},
            },
            {"MemberId": "1", "Name": "Bay", "PowerInputWatts": 164, "Status": {"State": "Enabled", "Health": "OK"}},
            {"MemberId": "2", "Name": "Bay", "PowerInputWatts": 0, "Status": {"State": "Absent"}},
        ],
        "Voltages": [{"MemberId": "0", "Name": "VRM1 Voltage", "ReadingVolts": 12}],
    },
    f"{CHASSIS}/1U/Thermal": {
        "Temperatures": [{"MemberId": "0", "Name": "CPU1 Temp", "ReadingCelsius": 62}],
        "Fans": [
            {"MemberId": "0", "Name": "BaseBoard System Fan", "Reading": 2100, "ReadingUnits": "RPM"},
            {"MemberId": "1", "Name": "Duty", "Reading": 35, "ReadingUnits": "Percent"},
            {"MemberId": "2", "Name": "Unitless", "Reading": 35},
        ],
    },
}


class Service(ThreadingHTTPServer):
    """A Redfish service of these resources, which can be made to answer otherwise."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.resources: Resources = dict(NEWER)
        self.can_expand = False
        self.asked: list[str] = []
        self.authorizations: set[str | None] = set()
        self.answer: Callable[[BaseHTTPRequestHandler], bool] = lambda handler: False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Service

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.authorizations.add(self.headers["Authorization"])
        path, _, query = self.path.partition("?")
        if self.server.answer(self):
            return
        if (query and not self.server.can_expand) or path not in self.server.resources:
            self.send(501 if query else 404, b"{}")
            return
        resource = self.server.resources[path]
        if query and isinstance(resource, dict):
            members = [self.server.resources[member["@odata.id"]] for member in resource["Members"]]
            resource = {**resource, "Members": members}
        self.send(200, resource if isinstance(resource, bytes) else json.dumps(resource).encode())

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def read(service: Service, timeout_seconds: float = 20.0) -> dict[str, dict[str, object]]:
    collector = RedfishCollector(Access(service.url, timeout_seconds=timeout_seconds))
    return {sample.device: dict(sample.values) for sample in collector.read()}


EXPECTED = {
    "1U": {
        "temperature_celsius": 22.5,
        "humidity_ratio": pytest.approx(0.41),
        "power_watts": 374.0,
        "energy_joules_total": pytest.approx(3.6e9),
    },
    "1U/CPU1Temp": {"temperature_celsius": 37.0, "health": "OK", "measured_ns": 1795273200500000000},
    "1U/Fan1": {"speed_rpm": 8460.0, "health": "OK"},
    "1U/CDUFlow": {"flow_liters_per_second": pytest.approx(1.5), "health": "OK"},
    "1U/Loop": {"pressure_pascals": pytest.approx(210500.0), "health": "OK"},
    "1U/Energy": {"energy_joules_total": pytest.approx(9e6), "health": "OK"},
    "1U/Duty": {"reading_ratio": pytest.approx(0.35), "health": "OK"},
}


def test_a_chassis_shows_its_totals_and_every_sensor_that_reads_in_base_units(service: Service) -> None:
    assert read(service) == EXPECTED


def test_a_service_that_expands_is_queried_once_for_all_sensors(service: Service) -> None:
    service.can_expand = True
    assert read(service) == EXPECTED
    assert [path for path in service.asked if "/Sensors/" in path] == []


def test_a_service_older_than_sensors_is_read_by_power_and_thermal(service: Service) -> None:
    service.resources = OLDER
    assert read(service) == {
        "1U/System Input Power": {"power_watts": 344.0},
        "1U/Bay (0)": {"power_watts": 180.0, "health": "Warning"},
        "1U/Bay (1)": {"power_watts": 164.0, "health": "OK"},
        "1U/VRM1 Voltage": {"voltage_volts": 12.0},
        "1U/CPU1 Temp": {"temperature_celsius": 62.0},
        "1U/BaseBoard System Fan": {"speed_rpm": 2100.0},
        "1U/Duty": {"reading_ratio": pytest.approx(0.35)},
    }


def test_only_the_chassis_named_are_queried(service: Service) -> None:
    collector = made(SOURCE, Host(), Options("redfish", {"url": service.url, "chassis": ["1U"]}))
    assert len(list(collector.read())) == len(EXPECTED)
    assert CHASSIS not in service.asked


def test_user_and_password_are_sent_as_the_file_says_now(service: Service, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    settings: dict[str, str] = {"url": service.url, "user": "monitor", "credential_file": str(secret)}
    collector = made(SOURCE, Host(), Options("redfish", {**settings}))
    for password in ("first", "sécond: word"):
        secret.write_text(f"{password}\n", "utf-8")
        list(collector.read())
    assert service.authorizations == {"Basic bW9uaXRvcjpmaXJzdA==", "Basic bW9uaXRvcjpzw6ljb25kOiB3b3Jk"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_password_that_others_may_read_is_refused_and_nothing_is_sent(
    service: Service, tmp_path: Path, mode: int
) -> None:
    (tmp_path / "secret").write_text("word")
    (tmp_path / "secret").chmod(mode)
    with pytest.raises(InvalidInputError, match="chmod 600"):
        list(RedfishCollector(Access(service.url, "monitor", str(tmp_path / "secret"))).read())
    assert service.asked == []


@pytest.mark.parametrize("status", [301, 302, 403, 429, 503])
def test_a_refusal_is_reported_with_its_status_and_a_redirect_is_not_followed(service: Service, status: int) -> None:
    def refuse(handler: BaseHTTPRequestHandler) -> bool:
        assert isinstance(handler, Handler)
        handler.send(status, b"", Location=f"http://127.0.0.2:{service.server_address[1]}/redfish/v1/Chassis")
        return True

    service.answer = refuse
    with pytest.raises(UnavailableError, match=f"{CHASSIS}: status {status}, expected 200"):
        read(service)
    assert len(service.asked) == 1


def test_a_password_that_was_refused_is_not_tried_again_until_it_changes(service: Service, tmp_path: Path) -> None:
    def is_refused(handler: BaseHTTPRequestHandler) -> bool:
        if handler.headers["Authorization"] == "Basic bW9uaXRvcjp3b3Jk":
            return False
        assert isinstance(handler, Handler)
        handler.send(401, b"{}")
        return True

    service.answer = is_refused
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("wrong\n")
    collector = RedfishCollector(Access(service.url, "monitor", str(secret)))
    for _ in range(5):
        with pytest.raises(UnavailableError, match="password"):
            list(collector.read())
    assert service.asked == [CHASSIS]
    secret.write_text("word\n")
    assert len(list(collector.read())) == len(EXPECTED)


def test_links_that_lead_away_from_the_service_are_not_followed(service: Service) -> None:
    away = [
        "http://127.0.0.2/redfish/v1/Chassis/1U",
        "//127.0.0.2/redfish",
        "/etc/passwd",
        "/redfish/ HTTP/1.1\r\nX: y",
        7,
    ]
    service.resources[CHASSIS] = {"Members": [{"@odata.id": link} for link in away]}
    with pytest.raises(UnavailableError, match="no sensor reads"):
        read(service)
    assert service.asked == [CHASSIS]


def test_a_service_that_drips_its_answer_is_given_up_in_time(service: Service) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)
        return True

    service.answer = lambda handler: _quietly(drip, handler)
    started = time.monotonic()
    with pytest.raises(UnavailableError, match="TimeoutError"):
        read(service, timeout_seconds=0.4)
    assert time.monotonic() - started < 3


def _quietly(answer: Callable[[BaseHTTPRequestHandler], bool], handler: BaseHTTPRequestHandler) -> bool:
    try:
        return answer(handler)
    except OSError:  # the client has hung up
        handler.close_connection = True
        return True


def test_an_answer_without_end_is_refused_before_it_fills_the_memory(service: Service) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * 65536)

    service.answer = lambda handler: _quietly(flood, handler)
    with pytest.raises(MalformedError, match="expected at most 4194304 bytes"):
        read(service)


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\xff", b"<html>", b"[]", b"7", b'{"a": NaN}', b"[" * 100_000, b'{"Members": "x"}', b'{"Members": [7]}'],
)
def test_garbage_is_refused_by_its_place(service: Service, body: bytes) -> None:
    service.resources = {CHASSIS: body}
    with pytest.raises(ProjectError, match=f"{service.url}{CHASSIS}"):
        read(service)


@pytest.mark.parametrize("reading", [None, "37", True, [], {}, 1e300])
def test_a_sensor_without_a_number_is_left_out(service: Service, reading: object) -> None:
    service.resources[f"{CHASSIS}/1U/Sensors/Fan1"] = sensor("Fan1", "Rotational", "RPM", reading)
    assert read(service) == {device: values for device, values in EXPECTED.items() if device != "1U/Fan1"}


def test_one_sensor_that_fails_does_not_cost_the_others(service: Service) -> None:
    del service.resources[f"{CHASSIS}/1U/Sensors/Fan1"]
    assert read(service).keys() == EXPECTED.keys() - {"1U/Fan1"}


def test_nobody_there_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match=r"http://127.0.0.1:1/redfish/v1/Chassis: ConnectionRefusedError"):
        list(RedfishCollector(Access("http://127.0.0.1:1")).read())


def test_a_certificate_that_nobody_vouches_for_is_refused(service: Service) -> None:
    with pytest.raises(UnavailableError, match="SSL"):
        list(RedfishCollector(Access(service.url.replace("http:", "https:"))).read())


def test_the_given_authority_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(UnavailableError, match=r"ca\.pem"):
        list(RedfishCollector(Access("https://127.0.0.1:1", ca_file=str(tmp_path / "ca.pem"))).read())


@pytest.mark.parametrize(
    "url", ["bmc", "ftp://bmc", "http://bmc", "https://", "https://u:p@bmc", "https://bmc/x", "https://bmc:99999"]
)
def test_a_url_that_is_no_safe_place_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"sources\.redfish\.url"):
        made(SOURCE, Host(), Options("redfish", {"url": url}))


@pytest.mark.parametrize("settings", [{"user": "monitor"}, {"credential_file": "/x"}, {"chassis": ["../x"]}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, str | list[str]]) -> None:
    with pytest.raises(InvalidInputError, match=r"sources\.redfish"):
        made(SOURCE, Host(), Options("redfish", {"url": "https://bmc", **settings}))


def test_without_a_url_the_source_is_unavailable() -> None:
    collector = made(SOURCE, Host(), Options("redfish"))
    assert not collector.available()
    with pytest.raises(UnavailableError, match=r"sources\.redfish\.url: not set"):
        list(collector.read())
