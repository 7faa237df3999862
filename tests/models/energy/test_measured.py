from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.energy.metered import SECOND, START_NS, a_run, put_readings, put_runs, steady

from crosswind.data.schema.answers.energy import MeterScope
from crosswind.data.schema.carbon import Origin
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import Measured, measured_energy

MICRO, MILLI = 1e-6, 1e-3


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def measure(store: Store, run: Run | None = None) -> Measured | None:
    return measured_energy(store, [run or a_run()]).get("r")


def test_a_blade_controllers_joules_are_those_between_start_and_end(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(500))
    put_readings(store, "pm_counters", "accel0", steady(300))  # which the node holds
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(500 * 100)
    assert (measured.energy.origin, measured.scope, measured.meter) == (Origin.MEASURED, MeterScope.NODE, "pm_counters")
    assert (measured.coverage, measured.node_count) == (1.0, 1)
    assert measured.node_watts == pytest.approx(500)


def test_samples_that_the_runs_edges_fall_between_are_divided_by_time(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(500))
    measured = measure(store, a_run(first=3.5, seconds=101))
    assert measured is not None
    assert measured.energy.joules == pytest.approx(500 * 101)


def test_a_samples_pair_as_long_as_the_run_does_not_tell_of_it(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(500, every=100))
    assert measure(store, a_run(first=10, seconds=30)) is None


def test_joules_of_all_nodes_are_added_up(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(500))
    put_readings(store, "pm_counters", "node", steady(700), node="n2")
    measured = measure(store, a_run(nodes=("n1", "n2", "n1")))  # a node listed twice is one
    assert measured is not None
    assert measured.energy.joules == pytest.approx(1200 * 100)
    assert measured.node_watts == pytest.approx(600)


def test_a_run_one_of_whose_nodes_was_not_metered_has_no_measured_energy(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(500))
    assert measure(store, a_run(nodes=("n1", "n2"))) is None


def test_time_without_samples_is_known_by_what_the_counter_grew_meanwhile(store: Store) -> None:
    readings = [reading for reading in steady(500) if not 20 <= reading[0] <= 70]
    put_readings(store, "pm_counters", "node", readings)
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(500 * 100)
    assert measured.coverage == 1.0


def test_a_meter_that_fell_silent_halfway_is_no_measurement(store: Store) -> None:
    put_readings(store, "pm_counters", "node", [reading for reading in steady(500) if reading[0] <= 50])
    assert measure(store) is None


def test_a_little_that_is_missing_counts_as_the_rest(store: Store) -> None:
    put_readings(store, "pm_counters", "node", [reading for reading in steady(500, every=5) if reading[0] <= 95])
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(500 * 100)
    assert measured.coverage == pytest.approx(0.95)


def test_a_counter_that_began_anew_tells_nothing_of_the_time_around_it(store: Store) -> None:
    whole = steady(500, every=20)
    anew = [(seconds, value - 30_000 if seconds >= 50 else value) for seconds, value in whole]
    put_readings(store, "pm_counters", "node", anew)
    assert measure(store) is None  # 20 s of 100 are unknown


def test_a_meter_that_never_moves_is_none(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(0))
    assert measure(store) is None


def wrapped(range_joules: int) -> list[tuple[float, int | float | None]]:
    """A package of 200 W whose counter resets 20 s into the run."""
    range_ = round(range_joules / MICRO)
    return [(at, (range_ - round(70 * 200 / MICRO) + round(200 * (at + 50) / MICRO)) % range_) for at, _ in steady(0)]


def test_a_wrap_of_rapl_that_may_have_come_twice_between_samples_is_not_guessed(store: Store) -> None:
    put_readings(
        store, "rapl", "package-0", wrapped(15_000), range_joules=round(15_000 / MICRO)
    )  # 10 s at 2000 W pass it
    assert measure(store) is None


def test_a_wrap_of_rapl_is_passed_and_packages_and_memory_are_added(store: Store) -> None:
    range_ = round(262_143 / MICRO)
    put_readings(store, "rapl", "package-0", wrapped(262_143), range_joules=range_)
    put_readings(store, "rapl", "package-0/dram", steady(30, scale=MICRO), range_joules=range_)
    put_readings(store, "rapl", "package-0/core", steady(150, scale=MICRO), range_joules=range_)
    put_readings(store, "rapl", "psys", steady(300, scale=MICRO), range_joules=range_)
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(230 * 100)
    assert (measured.scope, measured.meter) == (MeterScope.PROCESSORS, "rapl")


def test_processors_and_accelerators_are_a_part_of_the_node(store: Store) -> None:
    put_readings(store, "rapl", "package-0", steady(200, scale=MICRO), range_joules=10**15)
    put_readings(store, "gpu", "GPU-0", steady(400, scale=MILLI))
    put_readings(store, "gpu", "GPU-1", steady(300, scale=MILLI))
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(900 * 100)
    assert (measured.scope, measured.meter) == (MeterScope.CHIPS, "rapl+gpu")


def test_without_rapl_only_accelerators_are_told_of(store: Store) -> None:
    put_readings(store, "gpu", "GPU-0", steady(400, scale=MILLI))
    put_readings(store, "gpu", "MIG-1", steady(100, scale=MILLI), parent="GPU-0")
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(400 * 100)
    assert measured.scope is MeterScope.ACCELERATORS


def test_an_accelerator_that_was_seen_once_makes_the_sum_a_partial_one(store: Store) -> None:
    put_readings(store, "gpu", "GPU-0", steady(400, scale=MILLI))
    put_readings(store, "gpu", "GPU-1", [(50, 7)])
    assert measure(store) is None


def test_readings_of_power_are_integrated(store: Store) -> None:
    put_readings(store, "sensor", "dcmi", [(at, 400.0 + at) for at in range(-60, 721, 60)])
    put_readings(store, "sensor", "PSU1", [(at, 300.0) for at in range(-60, 721, 60)])
    measured = measure(store, a_run(first=30, seconds=600))
    assert measured is not None
    assert measured.energy.joules == pytest.approx((430 + 1030) / 2 * 600)
    assert (measured.scope, measured.meter) == (MeterScope.NODE, "sensor")


def test_nothing_is_known_between_readings_of_power_far_apart(store: Store) -> None:
    put_readings(store, "sensor", "dcmi", [(at, 400.0) for at in range(-60, 721, 60) if not 200 < at < 500])
    assert measure(store, a_run(seconds=600)) is None


def test_of_two_chassis_none_is_the_node(store: Store) -> None:
    for device in ("1", "Self"):
        put_readings(store, "sensor", device, [(at, 400.0) for at in range(-60, 721, 60)])
    assert measure(store, a_run(seconds=600)) is None


def test_a_whole_nodes_meter_comes_before_its_parts(store: Store) -> None:
    put_readings(store, "gpu", "GPU-0", steady(400, scale=MILLI))
    put_readings(store, "pm_counters", "node", steady(900))
    measured = measure(store)
    assert measured is not None
    assert measured.energy.joules == pytest.approx(900 * 100)
    assert measured.scope is MeterScope.NODE


def in_job(run: Run, job_id: str = "7") -> Run:
    return Run(**{**vars(run), "job_id": job_id})


def a_job(**facts: object) -> Job:
    defaults = {"node_count": 1, "started_ns": START_NS, "ended_ns": START_NS + 105 * SECOND, "energy_joules": 5e4}
    return Job("lab", "7", **(defaults | facts))


def test_a_job_with_one_run_has_that_runs_energy(store: Store) -> None:
    put_runs(store, in_job(a_run()))
    store.jobs.put(a_job())
    measured = measure(store, in_job(a_run()))
    assert measured is not None
    assert (measured.energy.joules, measured.scope, measured.meter) == (5e4, MeterScope.ACCOUNTED, "job")
    assert measured.node_watts == pytest.approx(5e4 / 105)


def test_a_job_with_two_runs_has_neithers_energy(store: Store) -> None:
    put_runs(store, in_job(a_run()), in_job(a_run("second", first=50)))
    store.jobs.put(a_job())
    assert measure(store, in_job(a_run())) is None


@pytest.mark.parametrize(
    "facts",
    [
        {"ended_ns": START_NS + 150 * SECOND},  # 50 s of it were not the run
        {"node_count": 2},
        {"energy_joules": None},
        {"energy_joules": 0.0},
        {"ended_ns": None},
    ],
)
def test_a_job_that_is_not_the_runs_does_not_tell(store: Store, facts: dict[str, object]) -> None:
    put_runs(store, in_job(a_run()))
    store.jobs.put(a_job(**facts))
    assert measure(store, in_job(a_run())) is None


def test_many_runs_are_told_apart(store: Store) -> None:
    rising = [(at, 1000 + at * at) for at in range(0, 1001, 5)]
    put_readings(store, "pm_counters", "node", rising)
    runs = [a_run(f"r{number}", first=100 * number) for number in range(10)]
    by_run = measured_energy(store, [*runs, a_run("later", first=5000)])
    expected = {f"r{number}": (100 * (number + 1)) ** 2 - (100 * number) ** 2 for number in range(10)}
    assert {run_id: measured.energy.joules for run_id, measured in by_run.items()} == pytest.approx(expected)


def test_a_run_that_still_runs_or_names_no_node_has_no_energy(store: Store) -> None:
    put_readings(store, "pm_counters", "node", steady(500))
    running = Run(**{**vars(a_run()), "ended_ns": None})
    assert measured_energy(store, [running, a_run("x", nodes=()), a_run("y", seconds=0)]) == {}
    assert measured_energy(store, []) == {}
