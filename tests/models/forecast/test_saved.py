import numpy as np
from tests.models.forecast.made_up_weather import BEGIN_NS, shown, weather
from tests.models.forecast.runs import STEPS, mixed, steps

from crosswind.models.forecast.in_run import InRunForecaster
from crosswind.models.forecast.observations import Lagged, Observations, targets_of
from crosswind.models.forecast.weather import HORIZONS_HOURS, MEMORY_HOURS, Weather
from crosswind.models.forecast.weather_models import Climate, LaggedTrees, LocalLevel
from crosswind.models.registry.archive import read_model, write_model


def test_a_forecaster_read_again_says_the_same() -> None:
    first = InRunForecaster((0.1, 0.5)).fit(mixed(30))
    totals = []
    for forecaster in (first, read_model(write_model(first))):
        run = forecaster.start("cohort-0", STEPS)
        run.observe(steps(1)[:10])
        totals.append(run.total().values)
    assert np.array_equal(*totals)


def test_a_run_in_progress_read_again_goes_on_where_it_stood() -> None:
    run = InRunForecaster((0.1, 0.5)).fit(mixed(30)).start("cohort-0", STEPS)
    run.observe(steps(1)[:10])
    again = read_model(write_model(run))
    for forecast in (run, again):
        forecast.observe(steps(1)[10:20])
    assert np.array_equal(run.total().values, again.total().values)


def test_the_weather_read_again_is_the_same() -> None:
    runs = shown(weather(60, daily=0.3, drift=0.1))
    first = Weather().fit(runs)
    again = read_model(write_model(first))
    assert np.array_equal(
        first.at(np.array([BEGIN_NS]), "stiff").values, again.at(np.array([BEGIN_NS]), "stiff").values
    )
    observed = Observations.of(runs)
    asked, _ = targets_of(observed, (0.0,))
    for model in (Climate(), LocalLevel(), LaggedTrees(n_rounds=5)):
        model.fit(observed, Lagged(MEMORY_HOURS), HORIZONS_HOURS)
        same = read_model(write_model(model))
        assert np.array_equal(model.predict(observed, asked), same.predict(observed, asked))
