"""Live studies: real trainings of a tiny space, and how studies are run, kept and judged."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.accuracy_tuner_live import live, tell_arm
from benchmarks.tuning_live.exhaustive import Truth, measure_all
from benchmarks.tuning_live.kept import Kept, Measured, Studied
from benchmarks.tuning_live.neighbour import neighbour
from benchmarks.tuning_live.plan import STUDIES, Plan
from benchmarks.tuning_live.ranks import started
from benchmarks.tuning_live.studies import POSTERIOR, SMALLEST, TUNERS, study, study_all

from crosswind.data.schema.errors import ConflictError, InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.trial import Configuration

TINY = Plan(
    {
        "batch": {"kind": "ordinal", "values": [1, 2]},
        "bucket_mb": {"kind": "ordinal", "values": [4.0]},
        "threads": {"kind": "ordinal", "values": [1]},
        "workers": {"kind": "ordinal", "values": [0, 1]},
    },
    seeds=(1,),
    trials=3,
    rounds=2,
    finalists=2,
    final_rounds=1,
    seconds=0.05,
)
TRUTH = Truth({"a": (1.0, 1.2, 1.1), "b": (1.15, 1.1, 1.2), "c": (2.2, 2.2)})


def bowl(configuration: Configuration) -> float:
    """Smallest at batch 16, 2 workers."""
    batch, workers = float(configuration["batch"]), float(configuration["workers"])
    return 1.0 + abs(batch - 16.0) / 10 + abs(workers - 2.0) / 5


def never(configuration: Configuration) -> float:
    raise AssertionError(f"{configuration} is measured again")


@pytest.mark.thorough
def test_a_tiny_benchmark_runs_from_end_to_end_and_is_read_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    figures = live(TINY, kept)
    assert figures["configurations"] == 4
    again = Kept(kept, TINY.setup)
    assert sorted(row.round for row in again.measured) == [0] * 4 + [1] * 4 + [2] * 2
    assert all(row.seconds_per_sample > 0 for row in again.measured)
    assert {(row.tuner, row.seed) for row in again.studied} == {(tuner, 1) for tuner in TUNERS}
    for row in again.studied:
        assert len({key for key, _ in row.measured}) == 3
        assert row.answers[SMALLEST] == min(row.measured, key=lambda measured: measured[1])[0]
    assert study_all(TINY, never, again) == again.studied
    truth = measure_all(TINY, never, again)
    assert figures["service_smallest_mean_regret"] == round(truth.regret(again.studied[0].answers[SMALLEST]), 4)


@pytest.mark.thorough
def test_a_rank_that_fails_says_why() -> None:
    with started(0.05) as ranks, pytest.raises(UnavailableError, match="KeyError: 'threads'"):
        ranks.measure({"batch": 2})


@pytest.mark.parametrize("tuner", TUNERS)
def test_a_study_measures_its_budget_and_never_twice(tuner: str) -> None:
    done = study(Plan(), tuner, 3, bowl)
    assert (len(done.measured), len({key for key, _ in done.measured})) == (15, 15)
    assert done.answers[SMALLEST] == min(done.measured, key=lambda measured: measured[1])[0]
    assert done.answers[POSTERIOR] in dict(done.measured)


def test_the_service_finds_the_best_of_a_bowl() -> None:
    plan = Plan()
    truth = Truth(
        {plan.space.key(configuration): (bowl(configuration),) for configuration in plan.space.configurations()}
    )
    assert truth.regret(study(plan, "service", 0, bowl).answers[SMALLEST]) == 0


def test_a_study_is_judged_by_the_medians_of_all_rounds() -> None:
    assert TRUTH.best(2) == ["a", "b"]
    assert TRUTH.regret("b") == pytest.approx(1.15 / 1.1 - 1)
    assert TRUTH.regret("c") == pytest.approx(1.0)
    assert TRUTH.within(0.05) == ["a", "b"]
    assert TRUTH.spread == pytest.approx(0.05 / 1.15)  # of b, between c (none) and a


@pytest.mark.parametrize(("keys", "verdict"), [("aabbc", "holds"), ("aabcc", "DOES NOT HOLD")])
def test_eight_of_ten_studies_are_asked_to_be_near(keys: str, verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    studies = [Studied("service", seed, {SMALLEST: key}, (), 1.0) for seed, key in enumerate(keys)]
    figures = tell_arm(TRUTH, studies, SMALLEST)
    assert capsys.readouterr().out.endswith(f"{verdict}\n")
    assert figures["service_smallest_within_ratio"] == sum(key != "c" for key in keys) / 5


def test_what_was_cut_off_goes_on_where_it_stood(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    kept = Kept(path, TINY.setup)
    kept.add(Measured("a", 0, 1.5, 4.0))
    kept.add(Studied("service", 1, {SMALLEST: "a"}, (("a", 1.5),), 9.0))
    path.write_text(path.read_text() + '{"measured": {"key"')
    again = Kept(path, TINY.setup)
    again.add(Measured("b", 0, 2.5, 4.0))
    read = Kept(path, TINY.setup)
    assert read.measured == [Measured("a", 0, 1.5, 4.0), Measured("b", 0, 2.5, 4.0)]
    assert read.studied == kept.studied


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"measured": {"key": "a"}}', '{"other": {}}', '{"studied": []}'])
def test_a_line_that_is_no_row_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text(f"{json.dumps({'setup': TINY.setup})}\n{line}\n")
    with pytest.raises(MalformedError, match=r"kept\.jsonl:2: .*expected"):
        Kept(path, TINY.setup)


def test_measurements_of_another_setup_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    Kept(path, TINY.setup)
    Kept(path, replace(TINY, seeds=(0, 4)).setup)
    with pytest.raises(ConflictError, match="name another file"):
        Kept(path, replace(TINY, seconds=1.0).setup)


def test_studies_are_chosen_by_their_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Plan.from_environment().seeds == tuple(range(10))
    monkeypatch.setenv(STUDIES, "4, 7")
    assert Plan.from_environment().seeds == (4, 7)
    monkeypatch.setenv(STUDIES, "4,x")
    with pytest.raises(InvalidInputError, match=r"TUNER_LIVE_STUDIES is '4,x', expected seeds by comma"):
        Plan.from_environment()


def test_one_round_is_too_few() -> None:
    with pytest.raises(InvalidInputError, match="rounds is 1, expected at least 2"):
        replace(TINY, rounds=1)


def test_a_neighbour_ends_with_its_study() -> None:
    with neighbour(1) as pid:
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
