from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.forecast.stored_weather import BEGIN_NS, HOUR_NS, store_weather

from crosswind.data.catalog.runs import ANY_RUN
from crosswind.data.schema.answers.stragglers import Regression
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.stragglers.coincidences import suspects
from crosswind.models.stragglers.regressions import regressions

HOURS, SLOWER_FROM = 160, 100
Facts = Callable[[int], dict[str, object]]


def slower(hours: float) -> float:
    return 1.25 if hours >= SLOWER_FROM else 1.0


def changes_in(home: Path, facts: Facts, factor: Callable[[float], float] = slower) -> tuple[Regression, ...]:
    """Changes of a run an hour, of two workloads in turn; `facts` are what each hour's run has of its own."""
    store_weather(home, HOURS, factor)
    with Store.open(home) as store:
        runs = all_runs(store, ANY_RUN)
        with store.catalog.write() as session:
            for hour, run in enumerate(runs):
                session.runs.merge(replace(run, **facts(hour)))  # type: ignore[arg-type]
        return regressions(store).changes


def test_a_new_library_is_suspected_of_what_began_with_it(tmp_path: Path) -> None:
    def facts(hour: int) -> dict[str, object]:
        torch = "2.12" if hour < SLOWER_FROM else "2.13"
        return {"software": {"torch": torch, "kernel": "6.1"}, "nodes": (f"n{hour % 7}",)}

    changes = changes_in(tmp_path, facts)
    assert sorted(change.workload for change in changes) == ["bert", "nanogpt"]
    for regression in changes:
        assert regression.ratio == pytest.approx(1.25, rel=0.04)
        assert regression.since_ns == pytest.approx(BEGIN_NS + SLOWER_FROM * HOUR_NS, abs=3 * HOUR_NS)
        [suspect] = regression.suspects
        assert (suspect.fact, suspect.before, suspect.since) == ("software torch", "2.12", "2.13")
        assert (suspect.switches, suspect.runs_off <= 1, suspect.exactness > 0.9) == (1, True, True)


def test_nothing_is_blamed_where_nothing_changed(tmp_path: Path) -> None:
    changes = changes_in(tmp_path, lambda hour: {"software": {"torch": "2.12"}, "tags": {"branch": "main"}})
    assert [change.suspects for change in changes] == [(), ()]


def test_what_changed_at_another_time_is_not_blamed(tmp_path: Path) -> None:
    changes = changes_in(tmp_path, lambda hour: {"software": {"torch": "2.12" if hour < 50 else "2.13"}})
    assert [change.suspects for change in changes] == [(), ()]


def test_a_faster_level_is_told_too_and_noise_is_not(tmp_path: Path) -> None:
    faster = changes_in(tmp_path / "a", lambda _: {}, lambda hours: 0.8 if hours >= 60 else 1.0)
    assert [change.ratio < 0.85 for change in faster] == [True, True]
    assert changes_in(tmp_path / "b", lambda _: {}, lambda _: 1.0) == ()


def run(number: int, **facts: object) -> Run:
    return replace(Run(f"r{number}", "w", "s", RunState.COMPLETED, started_ns=number), **facts)  # type: ignore[arg-type]


def tagged(values: list[str]) -> list[Run]:
    return [run(number, tags={"commit": value}) for number, value in enumerate(values)]


def test_a_fact_that_is_new_in_every_run_coincides_with_nothing() -> None:
    runs = tagged([str(number) for number in range(40)])
    assert suspects(runs[:20], runs[20:]) == []


def test_of_several_the_one_that_changed_only_then_comes_first() -> None:
    often = [str(number // 10) for number in range(60)]
    runs = [
        run(number, tags={"commit": value}, software={"driver": "550" if number < 30 else "560"})
        for number, value in enumerate(often)
    ]
    suspected = suspects(runs[:30], runs[30:])
    assert [suspect.fact for suspect in suspected] == ["software driver", "tag commit"]
    assert suspected[0].exactness > suspected[1].exactness
    assert (suspected[1].switches, suspected[1].before, suspected[1].since) == (5, "2", "3")


def test_a_node_that_came_in_is_named() -> None:
    runs = [run(number, nodes=("n1", "n2" if number < 30 else "n9")) for number in range(60)]
    assert {suspect.fact for suspect in suspects(runs[:30], runs[30:])} == {"node n2", "node n9"}


def test_a_fact_at_random_is_not_blamed() -> None:
    runs = tagged(["ab"[(7 * number * number) % 11 % 2] for number in range(60)])
    assert suspects(runs[:30], runs[30:]) == []


def test_what_an_experiment_notes_of_itself_is_no_cause() -> None:
    runs = [run(number, tags={"injected": "x" if number < 30 else "y"}) for number in range(60)]
    assert suspects(runs[:30], runs[30:]) == []


def test_few_runs_tell_that_they_are_few(tmp_path: Path) -> None:
    store_weather(tmp_path, 8)
    with Store.open(tmp_path) as store:
        answer = regressions(store)
        assert (answer.changes, answer.too_few) == ((), ("lab/bert", "lab/nanogpt"))
        assert answer.warnings[0].startswith("no workload has 10 completed runs")
        assert regressions(store, "elsewhere").warnings == ("no completed run is stored",)
        with pytest.raises(InvalidInputError, match="runs 0: expected 1 to 100000"):
            regressions(store, runs=0)
