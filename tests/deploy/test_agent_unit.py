import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from crosswind.ingest.agent.settings import AgentSettings, read_settings
from crosswind.ingest.collectors import SOURCES

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "crosswind-agent.service"


@pytest.fixture(scope="module")
def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(UNIT.read_text())
    return parser["Service"]


def test_systemd_finds_nothing_wrong_with_the_unit() -> None:
    if not (analyze := shutil.which("systemd-analyze")):
        pytest.skip("needs systemd: no program systemd-analyze")
    checked = subprocess.run([analyze, "verify", str(UNIT)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_agent_runs_as_its_own_user_without_any_capability(service: configparser.SectionProxy) -> None:
    assert service["User"] == "crosswind"
    assert (service["CapabilityBoundingSet"], service["AmbientCapabilities"]) == ("", "")
    assert service["NoNewPrivileges"] == "yes"


def test_nothing_hides_processes_or_gpus_from_it(service: configparser.SectionProxy) -> None:
    assert (service["ProtectProc"], service["ProcSubset"]) == ("default", "all")
    assert {"PrivateDevices", "ProtectClock", "PrivateUsers", "PrivateNetwork", "DevicePolicy"}.isdisjoint(service)


def test_it_may_read_the_clock_and_not_set_it(service: configparser.SectionProxy) -> None:
    allowed = set(service["SystemCallFilter"].split())
    assert {"adjtimex", "clock_adjtime"} <= allowed
    assert {"@clock", "clock_settime", "settimeofday"}.isdisjoint(allowed)


def test_every_user_may_announce_ranks_and_the_agent_may_clear_them_away() -> None:
    folders = [line.split(" -d ")[1] for line in UNIT.read_text().splitlines() if line.startswith("ExecStartPre=+")]
    assert "-o crosswind -g crosswind -m 1777 /run/crosswind/ranks" in folders  # sticky: its owner may remove
    assert "-o root -g root -m 0755 /run/crosswind/job.d" in folders


def test_it_reads_its_settings_again_on_reload(service: configparser.SectionProxy) -> None:
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["ExecStart"] == "/usr/bin/env crosswind agent --config /etc/crosswind/agent.toml"


def test_it_yields_to_the_job(service: configparser.SectionProxy) -> None:
    assert int(service["CPUWeight"]) < 100  # systemd's default
    assert int(service["Nice"]) > 0
    assert int(service["OOMScoreAdjust"]) > 0
    assert service["MemoryMax"] == "512M"


def test_the_sample_settings_are_those_that_the_agent_knows() -> None:
    path = DEPLOY / "agent.toml"
    settings = read_settings(path, AgentSettings(Path("/nowhere")))
    assert settings.spool == Path("/var/lib/crosswind/spool")
    assert settings.run_directory == Path("/run/crosswind")
    assert settings.job_directory == Path("/run/crosswind/job.d")
    assert settings.sources.keys() <= {source.name for source in SOURCES}


def test_what_the_sample_settings_leave_out_is_valid_too(tmp_path: Path) -> None:
    lines = (DEPLOY / "agent.toml").read_text().splitlines()
    path = tmp_path / "agent.toml"
    path.write_text("\n".join(line.removeprefix("# ") if " = " in line else line for line in lines))
    settings = read_settings(path, AgentSettings(Path("/nowhere")))
    assert (settings.node, settings.segment_seconds, settings.spool_bytes) == ("n17", 60.0, 1024**3)
    assert settings.ship.token_file == "/etc/crosswind/token"
    [filesystem] = [source for source in SOURCES if source.name == "filesystem"]
    assert settings.options(filesystem).texts("paths") == ("/scratch", "/home")
