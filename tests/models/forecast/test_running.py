from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.forecast.running import EARLIER_RUNS, remaining

SECOND = 1_000_000_000
START_NS = 1_767_323_045 * SECOND
STEPS = 40


def put(
    store: Store,
    run_id: str,
    seconds: Sequence[float],
    *,
    place: int,
    state: RunState = RunState.COMPLETED,
    configuration: dict[str, int] | None = None,
) -> None:
    """Stores a run that began `place` hours after the first, with its steps."""
    began = START_NS + place * 3600 * SECOND
    run = Run(
        run_id,
        "gpt",
        "lab",
        state,
        world_size=1,
        configuration={"batch": 8} if configuration is None else configuration,
        started_ns=began,
        ended_ns=began + round(sum(seconds) * SECOND) if state is RunState.COMPLETED else None,
    )
    with store.catalog.write() as session:
        session.runs.merge(run)
    if len(seconds):
        steps = {
            "ts_ns": [began + step * SECOND for step in range(len(seconds))],
            "run_id": [run_id] * len(seconds),
            "rank": [0] * len(seconds),
            "step": list(range(len(seconds))),
            "duration_seconds": [round(duration * SECOND) for duration in seconds],
        }
        store.lake.append(run_id, to_table(STEP, steps))  # type: ignore[arg-type]


def steps(seed: int, count: int = STEPS) -> list[float]:
    """Of 0.1 s, with 5 % of noise."""
    return list(0.1 * np.random.default_rng(seed).lognormal(0, 0.05, count))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Twelve completed runs of 40 steps, and one in progress after ten."""
    with Store.open(tmp_path / "store") as opened:
        for number in range(12):
            put(opened, f"r{number}", steps(number), place=number)
        put(opened, "now", steps(99, 10), place=12, state=RunState.RUNNING)
        yield opened


def test_what_is_left_of_a_run_is_about_its_steps_to_come(store: Store) -> None:
    forecast = remaining(store, "now")
    assert (forecast.steps_done, forecast.total_steps, forecast.earlier_runs, forecast.cohort_runs) == (
        10,
        STEPS,
        12,
        12,
    )
    assert forecast.seconds_done == pytest.approx(sum(steps(99, 10)), abs=1e-8)
    left = {quantile.level: quantile.seconds for quantile in forecast.remaining}
    # 30 steps of 0.1 s; means of ten and thirty steps with 5 % of noise each are known to 2 %.
    assert left[0.5] == pytest.approx(3.0, rel=0.08)
    assert left[0.05] < left[0.5] < left[0.95]
    assert forecast.next_step is not None
    assert forecast.next_step[3].seconds == pytest.approx(0.1, rel=0.15)


def test_the_whole_is_what_is_done_and_what_is_left(store: Store) -> None:
    forecast = remaining(store, "now")
    for left, whole in zip(forecast.remaining, forecast.total, strict=True):
        assert whole.seconds == pytest.approx(forecast.seconds_done + left.seconds)


def test_twice_the_steps_take_longer(store: Store) -> None:
    once, twice = (remaining(store, "now", total_steps=count).remaining[3].seconds for count in (40, 70))
    assert twice == pytest.approx(2 * once, rel=0.1)  # 60 steps against 30


def test_after_the_last_step_nothing_is_left(store: Store) -> None:
    forecast = remaining(store, "now", total_steps=10)
    assert {quantile.seconds for quantile in forecast.remaining} == {0.0}
    assert forecast.next_step is None


def test_a_run_of_one_step_that_is_done_has_nothing_left(store: Store) -> None:
    put(store, "one", [0.1], place=13, state=RunState.RUNNING)
    forecast = remaining(store, "one", total_steps=1)
    assert ({quantile.seconds for quantile in forecast.remaining}, forecast.next_step) == ({0.0}, None)
    assert {quantile.seconds for quantile in forecast.total} == {forecast.seconds_done}


@pytest.mark.parametrize("total", [-1, 0, 9, 10_000_001])
def test_fewer_steps_than_are_done_or_too_many_are_refused(store: Store, total: int) -> None:
    with pytest.raises(InvalidInputError, match=f"total_steps {total}: expected 10, as many as are done, to 10000000"):
        remaining(store, "now", total_steps=total)


def test_the_parameter_steps_tells_how_many_there_will_be(store: Store) -> None:
    put(store, "given", steps(5, 10), place=13, state=RunState.RUNNING, configuration={"batch": 8, "steps": 50})
    forecast = remaining(store, "given")
    assert (forecast.total_steps, forecast.cohort_runs) == (50, 0)
    assert forecast.remaining[3].seconds == pytest.approx(4.0, rel=0.1)


def test_without_anything_that_tells_the_steps_they_are_asked_for(store: Store) -> None:
    put(store, "new", steps(5, 10), place=13, state=RunState.RUNNING, configuration={"batch": 64})
    with pytest.raises(InvalidInputError, match="run new: nothing tells how many steps it will have, expected total"):
        remaining(store, "new")
    assert remaining(store, "new", total_steps=20).remaining[3].seconds == pytest.approx(1.0, rel=0.1)


def test_a_run_without_a_step_is_refused(store: Store) -> None:
    put(store, "none", [], place=13, state=RunState.RUNNING)
    with pytest.raises(InvalidInputError, match="run none: no step is recorded yet, expected one at least"):
        remaining(store, "none")


def test_an_unknown_run_is_refused(store: Store) -> None:
    with pytest.raises(NotFoundError, match="'nobody'"):
        remaining(store, "nobody")


def test_too_few_runs_before_it_are_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "few") as store:
        put(store, "first", steps(0, 10), place=0, state=RunState.RUNNING)
        with pytest.raises(InvalidInputError, match="0 earlier runs, expected at least one"):
            remaining(store, "first", total_steps=40)


def test_runs_that_began_later_change_nothing(store: Store) -> None:
    before = remaining(store, "now")
    for number in range(EARLIER_RUNS + 1):  # as many as are looked at, and one
        put(store, f"later{number:03d}", [3.0] * 12 if number < 3 else [], place=20 + number)
    assert remaining(store, "now") == before


def test_a_change_of_pace_is_noticed(store: Store) -> None:
    put(store, "slow", [*steps(5, 15), *(2 * duration for duration in steps(6, 15))], place=13, state=RunState.RUNNING)
    forecast = remaining(store, "slow", total_steps=STEPS)
    assert forecast.changed_at[0] == pytest.approx(15, abs=2)
    assert forecast.next_step is not None
    assert forecast.next_step[3].seconds == pytest.approx(0.2, rel=0.15)
