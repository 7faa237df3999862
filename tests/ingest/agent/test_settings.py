from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.agent.settings import AgentSettings, ShipSettings, read_settings
from crosswind.ingest.collectors import SOURCES, made
from crosswind.ingest.collectors.source import Host, Options, Source

CPU = next(source for source in SOURCES if source.name == "cpu")
WHOLE = """
spool = "/var/spool/crosswind"
interval_seconds = 2
run_directory = "/run/crosswind"
job_directory = "/run/crosswind/job.d"
node = "n7"
segment_seconds = 30
spool_bytes = 10_000_000

[ship]
url = "https://crosswind.example/"
token_file = "/etc/crosswind/token"

[metrics]
listen = "127.0.0.1:9750"

[sources.cpu]
interval_seconds = 10
timeout_seconds = 3

[sources.pressure]
enabled = false
"""


def settings_of(tmp_path: Path, text: str) -> AgentSettings:
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return read_settings(path, AgentSettings(Path("/spool")))


def test_everything_can_be_set(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, WHOLE)
    assert (settings.spool, settings.interval_seconds, settings.node) == (Path("/var/spool/crosswind"), 2, "n7")
    assert settings.job_directory == Path("/run/crosswind/job.d")
    assert settings.ship == ShipSettings("https://crosswind.example/", "/etc/crosswind/token")
    assert settings.metrics.listen == "127.0.0.1:9750"
    assert (settings.paced(CPU).interval_seconds, settings.paced(CPU).timeout_seconds) == (10.0, 3.0)
    enabled = {source.name for source in SOURCES if settings.is_enabled(source)}
    assert "cpu" in enabled
    assert "pressure" not in enabled


def test_what_is_not_set_stays_as_it_was(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "") == AgentSettings(Path("/spool"))


def test_a_source_that_is_off_is_read_once_it_is_configured() -> None:
    shy = Source("shy", CPU.make, advice="ask", is_default=False)
    assert not AgentSettings(Path("/spool")).is_enabled(shy)
    assert AgentSettings(Path("/spool"), sources={"shy": {"url": "x"}}).is_enabled(shy)
    assert not AgentSettings(Path("/spool"), sources={"shy": {"url": "x", "enabled": False}}).is_enabled(shy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("interval_seconds = 0", "interval 0 s"),
        ('interval_seconds = "1"', "interval_seconds: '1', expected a number"),
        ('spool = ""', "spool: '', expected a path that begins with /"),
        ('spool = "here"', "spool: 'here', expected a path that begins with /"),
        (r'node = "n\nx"', r"node 'n\nx'"),
        ('node = "../n"', "node '../n'"),
        ("interval_seconds = true", "interval_seconds: True"),
        ("segment_seconds = 0", "segment_seconds 0"),
        ("spool_bytes = 10", "spool_bytes 10"),
        ("speed = 3", "speed: unknown; expected one of spool"),
        ("[ship]\nurls = 'x'", "ship.urls: unknown; expected one of url"),
        ("[sources]\ncpu = 3", "sources.cpu: 3, expected a table"),
        ("spool = ", "expected TOML"),
        ("\x00", "expected TOML"),
    ],
)
def test_what_makes_no_sense_is_refused_by_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=r"agent\.toml") as refusal:
        settings_of(tmp_path, text)
    assert message in str(refusal.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_bytes(b"node = '\xff'")
    with pytest.raises(InvalidInputError, match=r"agent\.toml"):
        read_settings(tmp_path / "agent.toml", AgentSettings(Path("/spool")))


def test_a_file_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"agent\.toml"):
        read_settings(tmp_path / "agent.toml", AgentSettings(Path("/spool")))


def test_an_option_that_a_source_does_not_know_is_refused_with_those_it_knows() -> None:
    source = Source("bmc", CPU.make, advice="ask", options=("url", "user"))
    with pytest.raises(InvalidInputError, match=r"sources.bmc.uri: unknown; its options are: url, user"):
        made(source, Host(), Options("bmc", {"uri": "x"}))


@pytest.mark.parametrize("value", ["1", True, 0, -1, 1e12])
def test_a_pace_is_a_number_above_zero(value: object) -> None:
    settings = AgentSettings(Path("/spool"), sources={"cpu": {"interval_seconds": value}})  # type: ignore[dict-item]
    with pytest.raises(InvalidInputError, match=r"sources\.cpu\.interval_seconds"):
        settings.paced(CPU)


def test_options_have_types() -> None:
    options = Options("x", {"url": 3, "paths": ["a", 1], "fast": 1})  # type: ignore[dict-item]
    for ask in (
        lambda: options.text("url"),
        lambda: options.texts("paths"),
        lambda: options.flag("fast", default=False),
    ):
        with pytest.raises(InvalidInputError, match=r"sources\.x\."):
            ask()
