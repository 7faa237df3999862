from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.models.energy.metered import START_NS, a_run, put_readings, put_runs

from crosswind.data.schema.answers.energy import EnergyForecast, MeterScope, PowerBasis
from crosswind.data.schema.carbon import CarbonIntensity, Energy, Origin
from crosswind.data.schema.job import Job
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import Measured
from crosswind.models.energy.metered import MeteredRun, Meters
from crosswind.models.energy.of_run import energy_of
from crosswind.models.surrogate.surrogate import LEVELS

SECOND = 1_000_000_000
HOUR = Prediction(LEVELS, np.full((1, len(LEVELS)), 3600.0))
ASKED = Question("bert", "lab", {"batch": 8}, 16, 2)
SAME = '["lab", "bert", {"batch": 8}, 16]'  # its cohort


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def metered(watts: float, *, nodes: int = 2, scope: MeterScope = MeterScope.NODE, **facts: object) -> MeteredRun:
    measured = Measured(Energy(watts * nodes * 100, Origin.MEASURED), scope, "pm_counters", 1.0, nodes, 100.0)
    run = MeteredRun(SAME, "bert", "lab", 8.0, measured)
    return replace(run, **facts)  # type: ignore[arg-type]


def forecast_of(question: Question, *runs: MeteredRun, seconds: Prediction = HOUR) -> EnergyForecast:
    forecast = energy_of(question, seconds, runs)
    assert forecast is not None
    return forecast


def test_metered_repeats_give_their_median_power_over_the_predicted_time() -> None:
    forecast = forecast_of(ASKED, metered(490), metered(500), metered(510))
    assert forecast.joules == pytest.approx(500 * 2 * 3600)
    assert forecast.node_watts == pytest.approx(500)
    assert (forecast.origin, forecast.basis, forecast.metered_runs) == (Origin.MEASURED, PowerBasis.COHORT, 3)
    # Three runs do not show how runs differ.
    assert 0.8 * forecast.joules < forecast.low_joules < 0.98 * forecast.joules
    assert 1.02 * forecast.joules < forecast.high_joules < 1.25 * forecast.joules


def test_the_interval_holds_both_the_times_and_the_powers() -> None:
    times = Prediction(LEVELS, 3600 * np.exp(np.linspace(-0.5, 0.5, len(LEVELS)))[None, :])
    runs = [metered(500) for _ in range(20)]
    of_time, of_power = (
        times.at(0.95)[0] / times.at(0.5)[0],
        forecast_of(ASKED, *runs).high_joules / forecast_of(ASKED, *runs).joules,
    )
    both = forecast_of(ASKED, *runs, seconds=times)
    assert np.log(both.high_joules / both.joules) == pytest.approx(np.hypot(np.log(of_time), np.log(of_power)))


def test_runs_of_the_same_configuration_come_before_others_of_the_workload() -> None:
    other = metered(900, cohort="another batch")
    assert forecast_of(ASKED, metered(500), other).joules == pytest.approx(500 * 2 * 3600)
    forecast = forecast_of(replace(ASKED, configuration={"batch": 16}), metered(500), other)
    assert (forecast.basis, forecast.metered_runs) == (PowerBasis.WORKLOAD, 2)
    assert 500 * 2 * 3600 < forecast.joules < 900 * 2 * 3600


def test_the_interval_at_another_scale_is_as_wide_as_other_workloads_err_there() -> None:
    def on(workload: str, nodes: int, watts: float) -> MeteredRun:
        return metered(watts, nodes=nodes, workload=workload, cohort=f"{workload} {nodes}")

    def half(ratios: dict[str, float]) -> float:
        runs = [on(name, nodes, 1000 * ratio ** (nodes == 16)) for name, ratio in ratios.items() for nodes in (2, 16)]
        forecast = forecast_of(replace(ASKED, world_size=128, node_count=16), *runs, on("bert", 2, 1000))
        assert forecast.basis is PowerBasis.WORKLOAD
        return float(np.log(forecast.high_joules / forecast.joules))

    alike = half({"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.9, "e": 0.9})
    unlike = half({"a": 0.75, "b": 1.05, "c": 0.8, "d": 1.0, "e": 0.9})
    assert unlike > 1.5 * alike
    assert unlike > np.log(1.05 / 0.9)  # the 90 % interval holds what any of the five did


def test_many_workloads_that_draw_alike_tell_more_of_another_than_one() -> None:
    asked = replace(ASKED, workload="resnet")
    one = forecast_of(asked, metered(500))
    many = forecast_of(asked, *(metered(500 + place, workload=f"w{place}") for place in range(9)))
    assert np.log(many.high_joules / many.joules) < 0.5 * np.log(one.high_joules / one.joules)


def test_another_workload_here_is_an_estimate_with_a_wider_interval() -> None:
    familiar, strange = forecast_of(ASKED, metered(500)), forecast_of(replace(ASKED, workload="resnet"), metered(500))
    assert (strange.origin, strange.basis) == (Origin.ESTIMATED, PowerBasis.RELATED)
    assert strange.high_joules / strange.joules > 1.3 * familiar.high_joules / familiar.joules


def test_another_workloads_power_is_taken_only_from_the_accelerator_that_is_asked_about() -> None:
    asked = replace(ASKED, workload="resnet", configuration={"accelerator": "H100"})
    assert forecast_of(asked, metered(500)).basis is PowerBasis.DATA_SHEET
    on_it = forecast_of(asked, metered(500), metered(6000, workload="gpt", accelerator="H100-SXM"))
    assert (on_it.basis, on_it.node_watts) == (PowerBasis.RELATED, pytest.approx(6000))


def test_the_more_workloads_differ_the_less_they_tell_of_another() -> None:
    asked = replace(ASKED, workload="resnet")
    alike = forecast_of(asked, metered(500), metered(510, workload="gpt"))
    unlike = forecast_of(asked, metered(500), metered(5000, workload="gpt"))
    assert unlike.high_joules / unlike.joules > 3 * alike.high_joules / alike.joules


def test_meters_that_hear_less_are_not_mixed_with_those_that_hear_all() -> None:
    chips = [metered(300, scope=MeterScope.CHIPS) for _ in range(9)]
    forecast = forecast_of(ASKED, *chips, metered(500))
    assert forecast.node_watts == pytest.approx(500)
    assert (forecast.scope, forecast.metered_runs) == (MeterScope.NODE, 1)
    assert forecast_of(ASKED, *chips).scope is MeterScope.CHIPS


def test_nodes_that_are_not_told_are_those_that_earlier_runs_took_for_as_many_ranks() -> None:
    forecast = forecast_of(replace(ASKED, world_size=17, node_count=None), metered(500, cohort="x"))
    assert forecast.node_count == 3


def test_without_a_meter_the_accelerators_power_limit_gives_a_wide_estimate() -> None:
    forecast = forecast_of(Question("gpt", "lab", {"accelerator": "H100"}, 16))
    assert forecast.joules == pytest.approx(16 * 700 * 3600)
    assert (forecast.origin, forecast.basis, forecast.metered_runs) == (Origin.ESTIMATED, PowerBasis.DATA_SHEET, 0)
    assert (forecast.node_watts, forecast.node_count) == (None, None)
    assert forecast.high_joules > 3 * forecast.low_joules


@pytest.mark.parametrize("named", ["", "an abacus", "tpu-v5e"])  # nobody publishes the power of the last
def test_without_a_meter_and_a_data_sheet_there_is_no_energy(named: str) -> None:
    assert energy_of(Question("gpt", "lab", {"accelerator": named}, 16), HOUR, []) is None


def test_a_job_without_ranks_is_not_told_from_a_data_sheet() -> None:
    assert energy_of(Question("gpt", "lab", {"accelerator": "H100"}, 16), HOUR, [], is_job=True) is None


def test_carbon_is_that_of_the_median() -> None:
    forecast = energy_of(ASKED, HOUR, [metered(500)], intensity=CarbonIntensity(400, 1.25))
    assert forecast is not None
    assert forecast.carbon_grams == pytest.approx(1.0 * 1.25 * 400)  # 2 x 500 W for an hour
    assert forecast_of(ASKED, metered(500)).carbon_grams is None


def test_jobs_of_which_no_run_is_known_tell_of_power_too(store: Store) -> None:
    store.jobs.put(*(nightly(number, state) for number, state in enumerate(("COMPLETED", "COMPLETED", "FAILED"))))
    runs = Meters(store).runs("nightly", "lab")
    assert len(runs) == 2
    forecast = energy_of(Question("nightly", "lab", {}, 4), HOUR, runs, is_job=True)
    assert forecast is not None
    assert forecast.joules == pytest.approx(4 * 250 * 3600)
    assert (forecast.scope, forecast.node_count) == (MeterScope.ACCOUNTED, 4)


def nightly(number: int, state: str) -> Job:
    times = {"started_ns": START_NS, "ended_ns": START_NS + 1000 * SECOND}
    return Job("lab", str(number), "nightly", state=state, node_count=4, energy_joules=4 * 250 * 1000.0, **times)


def test_a_job_whose_run_is_known_counts_once(store: Store) -> None:
    in_job = Run(**{**vars(a_run()), "job_id": "0"})
    put_runs(store, in_job)
    store.jobs.put(replace(nightly(0, "COMPLETED"), node_count=1, ended_ns=START_NS + 100 * SECOND))
    [run] = Meters(store).runs("bert", "lab")
    assert (run.workload, run.ranks_per_node, run.measured.meter) == ("bert", 8, "job")


def test_samples_that_come_after_the_run_was_asked_about_count(store: Store) -> None:
    put_runs(store, a_run())
    meters = Meters(store)
    assert meters.runs("bert", "lab") == ()
    put_readings(store, "pm_counters", "node", [(at, 500 * at + 10**5) for at in range(-50, 201, 10)])
    [run] = meters.runs("bert", "lab")
    assert run.measured.node_watts == pytest.approx(500)
