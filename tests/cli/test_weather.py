"""`crosswind weather`, by the store at hand and through a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import Ask, asking
from tests.models.forecast.stored_weather import HOUR_NS, run_of, store_weather
from tests.serving import answering

from crosswind.cli.verbs.weather import weather_text
from crosswind.data.schema.answers.weather import HourForecast, LevelChange, Pace, SystemWeather, WorkloadWeather


@pytest.fixture(scope="module")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 hourly runs; those of the last 30 hours take 1.4 times as long."""
    home = tmp_path_factory.mktemp("regressed") / "home"
    store_weather(home, 120, lambda hours: 1.4 if hours >= 90 else 1.0)
    return home


@pytest.fixture
def ask(regressed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(regressed))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    return asking(capsys)


def without_now(weather: dict[str, Any]) -> dict[str, Any]:
    """Return what does not depend on when it was asked."""
    steady = {name: value for name, value in weather.items() if name not in ("now_ns", "now_at", "warnings")}
    kept = ("workload", "runs", "compared_runs", "newest_ended_ns", "newest_ended_at")
    return steady | {"workloads": [{name: workload[name] for name in kept} for workload in weather["workloads"]]}


def test_both_doors_tell_the_same(ask: Ask, regressed: Path) -> None:
    words = ("weather", "--workload", "bert", "--hours", "2", "--json")
    code, said, _ = ask(*words)
    here = json.loads(said)
    with answering(regressed) as server:
        there = json.loads(ask(*words, "--server", server)[1])
        wrong_code, _, complaint = ask("weather", "--system", "nowhere", "--server", server)
    assert code == 0
    assert without_now(here) == without_now(there)
    assert here["workloads"][0].keys() == there["workloads"][0].keys()
    assert here["workloads"][0]["hours"][0].keys() == there["workloads"][0]["hours"][0].keys()
    assert (wrong_code, "known are lab" in complaint) == (2, True)


def test_runs_of_long_ago_are_no_weather(ask: Ask, regressed: Path) -> None:
    code, said, _ = ask("weather")
    assert code == 0
    assert "no workload completed a run in the last 28 days; the newest ended 2026-01-05 23:10:00 UTC" in said
    assert "of what came since nothing is known" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--hours", "0"), "hours 0: expected 1 to 24"),
        (("--hours", "25"), "hours 25: expected 1 to 24"),
        (("--hours", "soon"), "invalid int value: 'soon'"),
        (("--workload", "unheard-of"), "known are bert, nanogpt"),
        (("--system", "nowhere"), "system 'nowhere': no completed run is stored, known are lab"),
    ],
)
def test_unanswerable_questions_are_refused(ask: Ask, words: tuple[str, ...], message: str) -> None:
    code, said, complaint = ask("weather", *words)
    assert (code, said) == (2, "")
    assert message in complaint


def hour(number: int, ratio: float, standing: str) -> HourForecast:
    at_ns = (run_of(20, "lab").started_ns or 0) + number * HOUR_NS
    return HourForecast(at_ns, Pace(standing), ratio, ratio - 0.1, ratio + 0.2)


def weather_of(hours: list[HourForecast], usual_from: int | None, *changes: LevelChange) -> SystemWeather:
    """The weather of one workload."""
    usual_from_ns = None if usual_from is None else hours[usual_from].at_ns
    times = (usual_from_ns, tuple(hours), 60, 57, 0)
    workload = WorkloadWeather("bert", hours[0].standing, None, *times, changes)
    return SystemWeather("lab", hours[0].at_ns, None, (), 114, 0, 1, 12, (workload,), ())


@pytest.mark.parametrize(
    ("ratios", "usual_from", "words"),
    [
        (
            [1.12, 1.1, 1.0],
            2,
            "slower than usual, 1.12x the usual time [1.02 .. 1.32]; as usual from 22:00 UTC (from 57",
        ),
        ([1.12, 1.2, 1.3], None, "slower than usual, 1.12x the usual time [1.02 .. 1.32]; 1.30x at 22:00 UTC; not as"),
        (
            [1.0, 1.2, 1.0],
            None,
            "as usual, 1.00x the usual time [0.90 .. 1.20]; 1.20x at 21:00 UTC (from 57 of 60 runs)",
        ),
        ([1.0, 1.0, 1.0], None, "as usual, 1.00x the usual time [0.90 .. 1.20]; so for the next 2 hours (from 57 of"),
        ([0.8, 0.8, 0.8], None, "faster than usual, 0.800x the usual time [0.70 .. 1.00]; not as usual within 2 hours"),
    ],
)
def test_now_and_later_are_one_line(ratios: list[float], usual_from: int | None, words: str) -> None:
    names = ["slower" if ratio > 1.05 else "faster" if ratio < 0.95 else "usual" for ratio in ratios]
    hours = [hour(*arguments) for arguments in zip(range(3), ratios, names, strict=True)]
    first, second, *_ = weather_text(weather_of(hours, usual_from), hourly=False).splitlines()
    assert first == "lab at 2026-01-01 20:00:00 UTC: 1 run and 12 jobs in progress"
    assert second.startswith(f"bert: now {words}")


def test_changes_are_named_with_their_time() -> None:
    change = LevelChange(run_of(5, "lab").started_ns or 0, 1.4, 45, 15)
    weather = weather_of([hour(0, 1.0, "usual"), hour(1, 1.0, "usual")], None, change)
    line = weather_text(weather, hourly=False).splitlines()[2]
    assert line == "  slower since 2026-01-01 05:00:00 UTC: 1.40x the time of before (15 runs against 45)"


def test_hours_are_a_table_when_one_workload_is_asked_for() -> None:
    weather = weather_of([hour(0, 1.0, "usual"), hour(1, 1.25, "slower")], None)
    lines = weather_text(weather, hourly=True).splitlines()
    assert lines[4].split() == ["20:00", "UTC", "1.00x", "[0.90", "..", "1.20]"]
    assert lines[5].split() == ["21:00", "UTC", "1.25x", "[1.15", "..", "1.45]"]
