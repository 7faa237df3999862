import math
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.models.forecast.stored_weather import BEGIN_NS, HOUR_NS, run_of, store_weather
from tests.waiting import until

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.weather import Pace, SystemWeather
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.models.forecast.weather_service import WeatherService

DAY_HOURS = 24
CHANGING_HOURS = 17 * DAY_HOURS + 12


def weather_at(home: Path, hours: int, workload: str | None = None) -> SystemWeather:
    """The weather at the end of so many hours."""
    with Store.open(home) as store:
        return WeatherService(store).answer("lab", workload, now_ns=BEGIN_NS + hours * HOUR_NS)


def slow_for_days(hours: float) -> float:
    return 1.3 if hours // DAY_HOURS in (3, 4, 9, 10, 11, 16, 17) else 1.0


def slow_at_night(hours: float) -> float:
    return math.exp(0.3 * math.cos(2 * math.pi * hours / DAY_HOURS))


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """17 days and a half, some spells of which were 1.3 times slower than the others; so is the last."""
    home = tmp_path_factory.mktemp("changing")
    store_weather(home, CHANGING_HOURS, slow_for_days)
    return home


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """14 days whose midnights are 1.35 times slower than the mean, and their noons as much faster."""
    home = tmp_path_factory.mktemp("nightly")
    store_weather(home, 14 * DAY_HOURS, slow_at_night)
    return home


@pytest.fixture(scope="module")
def changed(changing: Path) -> SystemWeather:
    """The weather after its last change."""
    return weather_at(changing, CHANGING_HOURS)


@pytest.fixture(scope="module")
def nights(nightly: Path) -> Iterator[WeatherService]:
    """The service over those nights."""
    with Store.open(nightly) as store:
        yield WeatherService(store)


def test_now_is_slower_when_the_newest_runs_were(changed: SystemWeather) -> None:
    weather = changed
    assert [workload.workload for workload in weather.workloads] == ["bert", "nanogpt"]
    for outlook in weather.workloads:
        now = outlook.hours[0]
        assert (outlook.standing, now.at_ns) == (Pace.SLOWER, BEGIN_NS + CHANGING_HOURS * HOUR_NS)
        assert now.ratio == pytest.approx(1.3, rel=0.05)  # noise 3 %, and what ridge and three other spells draw it by
        assert now.low_ratio < now.ratio < now.high_ratio
        assert outlook.chance_slower is not None
        assert outlook.chance_slower > 0.8


def test_now_is_as_usual_when_the_newest_runs_were(changing: Path) -> None:
    # Before the last spell: later runs do not count then.
    weather = weather_at(changing, CHANGING_HOURS - 2 * DAY_HOURS)
    assert [outlook.standing for outlook in weather.workloads] == [Pace.USUAL] * 2


def test_the_candidate_that_answers_did_best_when_asked_again(changed: SystemWeather) -> None:
    weather = changed
    assert [candidate.name for candidate in weather.candidates if candidate.name == "climate"] == ["climate"]
    assert weather.chosen == weather.candidates[0].name
    assert weather.candidates[0].skill > 0.3  # what runs of an hour ago took says most of what is not noise
    assert [candidate.loss for candidate in weather.candidates] == sorted(
        candidate.loss for candidate in weather.candidates
    )
    assert [horizon.hours for horizon in weather.candidates[0].by_horizon] == [0, 1, 6, 24]


def test_the_first_hour_is_told_at_which_it_is_as_usual(nights: WeatherService) -> None:
    now_ns = BEGIN_NS + 14 * DAY_HOURS * HOUR_NS
    weather = nights.answer("lab", "nanogpt", hours=6, now_ns=now_ns)  # from midnight to morning
    [outlook] = weather.workloads
    assert outlook.standing is Pace.SLOWER
    assert outlook.hours[0].ratio == pytest.approx(math.exp(0.3), rel=0.08)  # ridge and hourly noise of 3 %
    assert len(outlook.hours) == 7
    assert outlook.usual_from_ns is not None
    # exp(0.3 cos) falls below 1.05 at 5.4 hours and below 1 at 6: whole hours, one off either way.
    assert outlook.usual_from_ns in [BEGIN_NS + (14 * DAY_HOURS + hour) * HOUR_NS for hour in (5, 6)]


def test_hours_are_whole_after_now(nights: WeatherService) -> None:
    now_ns = BEGIN_NS + 14 * DAY_HOURS * HOUR_NS + 7
    [outlook] = nights.answer("lab", "bert", hours=2, now_ns=now_ns).workloads
    assert [hour.at_ns for hour in outlook.hours] == [now_ns, now_ns - 7 + HOUR_NS, now_ns - 7 + 2 * HOUR_NS]


def test_a_regression_is_named_with_its_time(tmp_path: Path) -> None:
    store_weather(tmp_path, 200, lambda hours: 1.2 if hours >= 150 else 1.0)
    for outlook in weather_at(tmp_path, 200).workloads:
        [change] = outlook.changes
        assert change.since_ns == pytest.approx(BEGIN_NS + 150 * HOUR_NS, abs=2 * HOUR_NS)  # a run every two hours
        assert change.ratio == pytest.approx(1.2, rel=0.03)  # medians of 25 runs and more of noise 3 %


def test_too_few_runs_are_wide_and_centred_at_the_usual_time(tmp_path: Path) -> None:
    store_weather(tmp_path, 20)
    weather = weather_at(tmp_path, 20)
    assert weather.chosen is None
    assert weather.candidates == ()
    assert weather.compared_runs == 14  # the first three of each workload have nothing to be compared with
    assert "14 runs could be compared with earlier ones like them, 40 are needed" in weather.warnings[0]
    for outlook in weather.workloads:
        assert (outlook.standing, outlook.chance_slower, outlook.usual_from_ns) == (Pace.UNKNOWN, None, None)
        assert {hour.standing for hour in outlook.hours} == {Pace.UNKNOWN}
        assert outlook.hours[0].ratio == 1
        assert outlook.hours[0].low_ratio < 0.75
        assert outlook.hours[0].high_ratio > 2


def test_what_runs_now_is_counted(tmp_path: Path) -> None:
    store_weather(tmp_path, 10)
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            session.runs.merge(run_of(11, "lab", RunState.RUNNING))
            session.runs.merge(run_of(12, "elsewhere", RunState.RUNNING))
        store.jobs.put(
            Job("lab", "1", state="RUNNING", started_ns=1),
            Job("lab", "2", state="RUNNING", started_ns=1),
            Job("lab", "3", state="PENDING"),
            Job("elsewhere", "4", state="RUNNING", started_ns=1),
        )
        store.jobs.put(Job("lab", "2", state="COMPLETED", started_ns=1, ended_ns=2))
    weather = weather_at(tmp_path, 13)
    assert (weather.running_runs, weather.running_jobs) == (1, 1)


def test_workloads_that_ran_long_ago_are_told_only_when_named(tmp_path: Path) -> None:
    store_weather(tmp_path, 10)
    later = 10 + 29 * DAY_HOURS
    assert weather_at(tmp_path, later).workloads == ()
    assert [outlook.workload for outlook in weather_at(tmp_path, later, "bert").workloads] == ["bert"]
    assert "ended 696 hours ago" in weather_at(tmp_path, later).warnings[-1]


@pytest.mark.thorough
def test_a_change_of_more_than_four_weeks_ago_is_not_told(tmp_path: Path) -> None:
    store_weather(tmp_path, 200, lambda hours: 1.2 if hours >= 50 else 1.0)
    assert len(weather_at(tmp_path, 200, "bert").workloads[0].changes) == 1
    assert weather_at(tmp_path, 60 + 28 * DAY_HOURS, "bert").workloads[0].changes == ()


def test_runs_that_came_since_are_heard_of_when_it_is_time(tmp_path: Path) -> None:
    store_weather(tmp_path, 20)
    with Store.open(tmp_path) as store:
        always, seldom = WeatherService(store), WeatherService(store, fresh_seconds=1e6)
        before = [weather.answer("lab").compared_runs for weather in (always, seldom)]
        store_weather(tmp_path, 4, first=20)
        after = [weather.answer("lab").compared_runs for weather in (always, seldom)]
    assert (before, after) == ([14, 14], [18, 14])


def test_who_asks_while_it_is_learned_again_gets_the_weather_as_it_was(tmp_path: Path) -> None:
    store_weather(tmp_path, 20)
    with Store.open(tmp_path) as store:
        weather = WeatherService(store, fresh_seconds=5.0)
        weather.answer("lab")
        store_weather(tmp_path, 4, first=20)
        weather._learned_of["lab"].checked_at -= 6.0
        assert weather.answer("lab").compared_runs == 14
        until(lambda: weather.answer("lab").compared_runs != 14)
        assert weather.answer("lab").compared_runs == 18
        store_weather(tmp_path, 4, first=24)
        weather._learned_of["lab"].checked_at -= 51.0
        assert weather.answer("lab").compared_runs == 22


def test_a_model_is_kept_until_a_twentieth_of_the_runs_is_new(tmp_path: Path) -> None:
    store_weather(tmp_path, 100)
    with Store.open(tmp_path) as store:
        weather = WeatherService(store)
        weather.answer("lab")
        model = weather._learned_of["lab"].weather.model
        assert model is not None
        store_weather(tmp_path, 4, lambda _: 1.5, first=100)
        assert weather.answer("lab").compared_runs == 98
        kept = weather._learned_of["lab"].weather
        assert kept.model is model
        assert kept.runs is not None
        assert kept.runs.log_ratio[-4:].min() > math.log(1.3)
        store_weather(tmp_path, 2, first=104)
        weather.answer("lab")
    assert weather._learned_of["lab"].weather.model is not model


def test_a_kept_model_sees_what_changed_as_one_does_that_was_learned_again(changing: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(changing, home)
    with Store.open(home) as store:
        weather = WeatherService(store)
        weather.answer("lab")
        store_weather(home, 16, lambda _: 1.0, first=CHANGING_HOURS)
        at_ns = BEGIN_NS + (CHANGING_HOURS + 16) * HOUR_NS
        kept, again = weather.answer("lab", now_ns=at_ns), WeatherService(store).answer("lab", now_ns=at_ns)
    for outlook, other in zip(kept.workloads, again.workloads, strict=True):
        assert outlook.standing is other.standing
        assert outlook.hours[0].ratio == pytest.approx(other.hours[0].ratio, rel=0.05)
        assert outlook.hours[0].ratio < 1.2  # it was 1.3 when the model was fitted


def test_many_who_ask_at_once_get_the_same(tmp_path: Path) -> None:
    store_weather(tmp_path, 60)
    with Store.open(tmp_path) as store, ThreadPoolExecutor(8) as pool:
        weather = WeatherService(store, fresh_seconds=1e6)
        answers = list(pool.map(lambda _: weather.answer("lab", now_ns=BEGIN_NS + 60 * HOUR_NS), range(8)))
    assert all(answer == answers[0] for answer in answers)


def test_without_a_system_it_is_that_of_the_newest_run(tmp_path: Path) -> None:
    store_weather(tmp_path, 5, system="old")
    store_weather(tmp_path, 5, first=5)
    with Store.open(tmp_path) as store:
        assert WeatherService(store).answer().system == "lab"
        assert WeatherService(store).answer("old").system == "old"


def test_what_nobody_knows_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with pytest.raises(InvalidInputError, match="no completed run is stored, expected one"):
            WeatherService(store).answer()
        store_weather(tmp_path, 5)
        with pytest.raises(InvalidInputError, match="system 'nowhere': no completed run is stored, known are lab"):
            WeatherService(store).answer("nowhere")
        with pytest.raises(InvalidInputError, match=r"workload 'unheard-of': .* known are bert, nanogpt"):
            WeatherService(store).answer("lab", "unheard-of")
        for hours in (0, 25, -1):
            with pytest.raises(InvalidInputError, match=f"hours {hours}: expected 1 to 24"):
                WeatherService(store).answer("lab", hours=hours)


def test_runs_without_steps_are_counted_and_not_compared(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            for hour in range(6):
                session.runs.merge(run_of(hour, "lab"))
        weather = WeatherService(store).answer("lab", now_ns=BEGIN_NS + 6 * HOUR_NS)
    assert [(outlook.runs, outlook.compared_runs) for outlook in weather.workloads] == [(3, 0), (3, 0)]
    assert weather.compared_runs == 0


@pytest.mark.thorough
def test_in_the_labs_random_order_nothing_is_foretold_and_no_regression_is_seen(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        load_lab_samples(store)
        weather = WeatherService(store).answer()
    assert weather.chosen == "climate"
    assert any("no candidate predicted the past better" in warning for warning in weather.warnings)
    assert weather.compared_runs == 404
    assert all(outlook.changes == () for outlook in weather.workloads)
