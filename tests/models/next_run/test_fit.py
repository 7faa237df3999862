from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.models.next_run.made_up_runs import GAP_SECONDS, SECOND, START_NS, rows, scaled

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.job import Job
from crosswind.data.schema.model import Evidence
from crosswind.data.store.store import Store
from crosswind.models.next_run.cases import cases, conditions_of
from crosswind.models.next_run.cohort_store import questions_of
from crosswind.models.next_run.fit import VALIDATED_MAX, Validation, fitted, later_runs, track_records, train, validate
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.registry.registry import Registry


@dataclass(frozen=True)
class Made:
    """A store, and what was trained on it."""

    store: Store
    outcome: Outcome
    model: NextRunModel
    evidence: Evidence


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """The lab's own measured runs."""
    folder: Path = tmp_path_factory.mktemp("lab")
    with Store.open(folder / "store") as store:
        load_lab_samples(store)
        made = train(store, Outcome.STEP)
        yield Made(store, Outcome.STEP, made.model, made.evidence)


@pytest.fixture(scope="module")
def asked() -> Validation:
    """The questions about the later ones of 64 runs."""
    made = validate(Outcome.RUN, scaled(4), None)
    assert made is not None
    return made


def test_later_runs_are_asked_about_from_the_last_quarter(asked: Validation) -> None:
    assert len(asked.seconds) == 16  # of 64
    assert asked.seconds.tolist() == scaled(4)["seconds"].tolist()[48:]
    assert set(asked.kinds) == {"repeat"}


def test_too_few_runs_are_asked_about_nothing() -> None:
    assert validate(Outcome.RUN, scaled(4)[:28], None) is None  # 7 would be left to ask about, 8 are enough
    assert validate(Outcome.RUN, scaled(4)[:29], None) is not None


@pytest.mark.thorough
def test_at_most_so_many_are_asked_about() -> None:
    many = validate(Outcome.RUN, scaled(402, batches=(8,)), None)  # a quarter are 402
    assert many is not None
    assert len(many.seconds) == VALIDATED_MAX


@pytest.mark.thorough
@pytest.mark.parametrize("place", [52, 63])
def test_no_answer_knows_a_run_after_its_question(place: int) -> None:
    runs, changed = scaled(4), scaled(4)
    changed.loc[place, "seconds"] *= 100
    before, after = (validate(Outcome.RUN, history, None) for history in (runs, changed))
    assert before is not None
    assert after is not None
    asked = place - 48 + 1  # up to the changed one itself
    assert np.array_equal(before.predicted.values[:asked], after.predicted.values[:asked])
    for name, naive in before.naive.items():
        assert np.array_equal(naive.values[:asked], after.naive[name].values[:asked])


def test_an_answer_knows_the_runs_that_had_ended_before_its_question() -> None:
    runs = rows(*4 * [("gpt", "lab", {}, 1, 10.0 + number % 3) for number in range(12)])
    changed = runs.copy()
    changed.loc[36:40, "seconds"] /= 2
    before, after = (validate(Outcome.RUN, history, None) for history in (runs, changed))
    assert before is not None
    assert after is not None
    assert not np.array_equal(before.predicted.values[5:], after.predicted.values[5:])


@pytest.mark.parametrize("place", [10, 40])
def test_a_run_still_in_progress_is_not_heard_of(place: int) -> None:
    """One that takes longer than all the others together says nothing to any of them."""
    runs, changed = (rows(*4 * [("gpt", "lab", {}, 1, 10.0 + number % 3) for number in range(12)]) for _ in range(2))
    for table, seconds in ((runs, 1e6), (changed, 2e6)):
        table.loc[place, "seconds"] = seconds
        table.loc[place, "ended_ns"] = START_NS + 2_000_000 * SECOND
    before, after = (validate(Outcome.RUN, history, None) for history in (runs, changed))
    assert before is not None
    assert after is not None
    assert np.array_equal(before.predicted.values, after.predicted.values)


def test_runs_that_all_go_at_once_tell_nothing_of_each_other() -> None:
    runs = scaled(4).assign(started_ns=START_NS, ended_ns=START_NS + SECOND)
    assert validate(Outcome.RUN, runs, None) is None


def test_an_end_that_nobody_told_is_the_start_and_the_seconds(asked: Validation) -> None:
    runs = scaled(4)
    unknown = validate(Outcome.RUN, runs.assign(ended_ns=pd.Series([None] * len(runs), dtype=object)), None)
    assert unknown is not None
    assert np.array_equal(asked.predicted.values, unknown.predicted.values)


def test_accuracy_is_of_every_kind_of_question_that_was_asked_often_enough(asked: Validation) -> None:
    repeated = scaled(4)
    new = rows(*(("gpt", "lab", {"batch": 65 + place}, 2, 10.0) for place in range(16)))
    late = START_NS + 64 * GAP_SECONDS * SECOND
    new = new.assign(run_id=[f"n{place}" for place in range(16)], started_ns=new["started_ns"] + (late - START_NS))
    new["ended_ns"] = new["started_ns"] + SECOND
    of_both = validate(Outcome.RUN, pd.concat([repeated, new], ignore_index=True), None)
    assert of_both is not None
    worth = track_records(of_both)
    assert set(worth) == {"configuration"}  # four repeats are too few
    assert worth["configuration"].runs == 16
    assert set(track_records(asked)) == {"repeat"}


def test_a_value_of_another_kind_in_a_later_run_keeps_nobody_from_an_answer(tmp_path: Path) -> None:
    late = rows(*32 * [("gpt", "lab", {"batch": "auto"}, 2, 10.0)])
    late = late.assign(run_id=[f"n{place}" for place in range(32)], started_ns=late["started_ns"] + 10**15)
    late["ended_ns"] = late["started_ns"] + SECOND
    with Store.open(tmp_path / "store") as store:
        model = fitted(store, Outcome.JOB, pd.concat([scaled(4), late], ignore_index=True))
    assert "repeat" in model.track_records


def test_training_without_enough_runs_says_so(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store, pytest.raises(InvalidInputError, match="0 runs with run_seconds"):
        train(store, Outcome.RUN)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Forty jobs whose end nobody told, and what was trained on them."""

    def job(number: int) -> Job:
        began = START_NS + number * 100 * SECOND
        return Job(
            *("lab", str(number), "relax"), state="COMPLETED", node_count=2, started_ns=began, elapsed_seconds=50.0
        )

    with Store.open(tmp_path_factory.mktemp("jobs") / "store") as store:
        store.jobs.put(*map(job, range(40)))
        made = train(store, Outcome.JOB)
        yield Made(store, Outcome.JOB, made.model, made.evidence)


def test_jobs_are_trained_on_though_nobody_told_their_end(jobs: Made) -> None:
    learned = jobs.evidence.learned
    assert (learned.from_ns, learned.rows) == (START_NS, 40)
    assert learned.to_ns == START_NS + (3900 + 50) * SECOND
    assert cases(jobs.store, Outcome.JOB)["world_size"].tolist() == [2] * 40


@pytest.mark.thorough
def test_the_lab_s_steps_are_foretold_no_worse_than_by_their_median_and_the_interval_holds(lab: Made) -> None:
    worth = lab.model.track_records["repeat"]
    assert worth.runs == 110  # a quarter of the sample's
    assert worth.skill is not None
    assert worth.coverage_90 is not None
    # Measured 0.090 and 0.836 on these recorded runs, so chance has no part in it. Over 110 runs a share of 0.9 has a
    # standard error of 0.03, and a skill one of about 0.04: both are kept two of them below what was measured.
    assert worth.skill > 0.0
    assert worth.coverage_90 > 0.78


@pytest.mark.thorough
def test_the_lab_s_conditions_are_learned_from(lab: Made) -> None:
    runs = cases(lab.store, Outcome.STEP)
    conditions = conditions_of(lab.store, Outcome.STEP, runs[:50])
    assert conditions is not None
    assert len(conditions) == 50
    assert set(lab.evidence.learned.features) >= {"world_size", "condition.neighbour_ranks"}
    assert lab.evidence.learned.rows == len(runs)


@pytest.mark.parametrize("of", ["jobs", pytest.param("lab", marks=pytest.mark.thorough)])
def test_a_model_is_saved_read_registered_and_asked_about_later_runs(of: str, request: pytest.FixtureRequest) -> None:
    trained: Made = request.getfixturevalue(of)
    store, outcome = trained.store, trained.outcome
    read: NextRunModel = read_model(write_model(trained.model))
    [question] = questions_of(cases(store, outcome)[:1])
    for asked in (question, replace(question, world_size=64)):
        assert read.answer(asked) == trained.model.answer(asked)
    record = Registry(store).register(str(outcome), read, trained.evidence)
    assert later_runs(store, outcome, record, read) is None  # it has seen them all


def test_fitting_keeps_what_it_is_worth(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        model = fitted(store, Outcome.JOB, scaled(6))
    assert isinstance(model, NextRunModel)
    assert model.track_records["repeat"].runs == 24
