import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.models.next_run.made_up_runs import GAP_SECONDS, SECOND, START_NS, put, scaled

from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.schema.answers.predictions import Outcome, PredictionBasis
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.job import Job
from crosswind.data.schema.question import Question
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.next_run.cases import cases
from crosswind.models.next_run.fit import train
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.next_run.model_source import Promoted
from crosswind.models.next_run.predictor import MODELS_MAX, PLACES_MAX, RunPredictor
from crosswind.models.next_run.quantiles import distribution
from crosswind.models.next_run.registered import run_predictor
from crosswind.models.registry.registry import Registry

ASKED = Question("gpt", "lab", {"batch": 8}, 2)
FRESH_SECONDS = 0.05


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Six runs of one cohort, of 10 s to 12.5 s."""
    with Store.open(tmp_path / "store") as opened:
        for number in range(6):
            put(opened, f"r{number}", 10.0 + number / 2, place=number)
        yield opened


def job(number: int, state: str = "COMPLETED", *, system: str = "lab", seconds: float = 60.0) -> Job:
    began = START_NS + number * GAP_SECONDS * SECOND
    return Job(system, str(number), "relax", state=state, node_count=4, started_ns=began, elapsed_seconds=seconds)


def test_runs_without_steps_are_told_by_their_run_time(store: Store) -> None:
    answer = RunPredictor(store).answer(ASKED)
    assert (answer.outcome, answer.basis, answer.cohort_runs, answer.model) == (
        "run_seconds",
        PredictionBasis.COHORT,
        6,
        None,
    )
    assert 10 < distribution(answer).at(0.5)[0] < 12.5


def test_a_run_that_ended_since_is_heard_of(store: Store) -> None:
    predictor = RunPredictor(store)
    assert predictor.answer(ASKED).cohort_runs == 6
    put(store, "r6", 11.0, place=6)
    answer = predictor.answer(ASKED)
    assert (answer.cohort_runs, answer.evidence[0].run_id) == (7, "r6")


def test_within_its_time_it_does_not_look_again(store: Store) -> None:
    predictor = RunPredictor(store, fresh_seconds=3600.0)
    first = predictor.answer(ASKED)
    put(store, "r6", 11.0, place=6)
    assert predictor.answer(ASKED) is first


def test_an_answer_is_kept_while_nothing_comes_new(store: Store) -> None:
    predictor = RunPredictor(store)
    first = predictor.answer(ASKED)
    put(store, "b0", 5.0, place=7, workload="bert")
    assert predictor.answer(ASKED) is first
    put(store, "r6", 11.0, place=8)
    assert predictor.answer(ASKED) is not first


def test_another_number_of_nodes_is_another_question(store: Store) -> None:
    predictor, network = RunPredictor(store), {"hidden": 4096, "layers": 32, "global_batch": 512, "tp": 8}
    dense, sparse = (predictor.answer(Question("new", "lab", network, 64, nodes)) for nodes in (8, 64))
    assert distribution(dense).at(0.5)[0] < distribution(sparse).at(0.5)[0]  # tensors cross the network between nodes


def test_two_threads_get_the_same_answer_of_one_fit(store: Store) -> None:
    predictor = RunPredictor(store, fresh_seconds=3600.0)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: predictor.answer(ASKED), range(16)))
    assert all(answer == answers[0] for answer in answers)
    assert len(predictor._cached_models) == 1


class SlowLake(Lake):
    """A lake of which a query takes longer than an answer stays fresh."""

    queries = 0

    def sets(self) -> list[str]:
        self.queries += 1
        time.sleep(2 * FRESH_SECONDS)
        return super().sets()


def test_many_who_ask_at_once_share_one_query_for_the_finest_outcome(store: Store) -> None:
    lake = store.__dict__["lake"] = SlowLake(store.lake.root)
    predictor = RunPredictor(store, fresh_seconds=FRESH_SECONDS)
    asked = Question("unheard", "lab", {}, 2)  # whose finest outcome is looked for among the jobs, too
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda _: predictor.finest(asked), range(16)))
    once, lake.queries = lake.queries, 0
    predictor = RunPredictor(store, fresh_seconds=FRESH_SECONDS)
    assert {predictor.finest(asked), predictor.finest(asked)} == set(outcomes)  # the second from the first one's answer
    assert 0 < lake.queries <= once < 4 * lake.queries  # without sharing, 16 times


def test_threads_are_answered_while_runs_come_in(store: Store) -> None:
    predictor = RunPredictor(store)
    with ThreadPoolExecutor(4) as pool:
        counts = [pool.submit(lambda: predictor.answer(ASKED).cohort_runs) for _ in range(6)]
        for number in range(6, 9):
            put(store, f"r{number}", 11.0, place=number)
        assert {future.result() for future in counts} <= {6, 7, 8, 9}
    assert predictor.answer(ASKED).cohort_runs == 9


def test_the_chance_to_exceed_a_limit_is_told_where_it_is_asked_for(store: Store) -> None:
    predictor = RunPredictor(store)
    assert predictor.answer(ASKED).exceedance is None
    median = float(distribution(predictor.answer(ASKED)).at(0.5)[0])
    chances = [predictor.answer(ASKED, limit_seconds=limit).exceedance for limit in (1.0, median, 1000.0)]
    assert chances == pytest.approx([1.0, 0.5, 0.0], abs=0.01)


def test_a_workload_that_never_ran_is_fitted_for_nobody_and_its_name_is_mended(store: Store) -> None:
    predictor = RunPredictor(store)
    with pytest.raises(InvalidInputError, match=r"did you mean gpt\?"):
        predictor.answer(Question("gtp", "lab", {}, 2), Outcome.RUN)
    assert predictor._cached_models["gtp", Outcome.RUN].model.features == ()
    put(store, "g0", 3.0, place=20, workload="gtp", configuration={})
    assert predictor.answer(Question("gtp", "lab", {}, 2), Outcome.RUN).basis is PredictionBasis.COHORT


def test_what_is_kept_is_bounded_whatever_is_asked(store: Store) -> None:
    predictor = RunPredictor(store, fresh_seconds=3600.0)
    predictor._finest = {(str(number), "lab"): (0.0, Outcome.RUN) for number in range(PLACES_MAX)}
    predictor.finest(ASKED)
    assert len(predictor._finest) == 1
    predictor.answer(ASKED, Outcome.RUN)
    [kept] = predictor._cached_models.values()
    predictor._cached_models = {(str(number), Outcome.RUN): kept for number in range(MODELS_MAX)}
    predictor.answer(ASKED, Outcome.RUN)
    assert len(predictor._cached_models) == 1


def test_many_questions_are_of_one_workload_on_one_system(store: Store) -> None:
    predictor = RunPredictor(store)
    assert predictor.answers([ASKED, ASKED]).basis == (PredictionBasis.COHORT, PredictionBasis.COHORT)
    for questions in ([], [ASKED, Question("bert", "lab", {}, 2)], [ASKED, Question("gpt", "other", {}, 2)]):
        with pytest.raises(InvalidInputError, match=f"{len(questions)} questions: expected some, of one workload"):
            predictor.answers(questions)


def test_one_odd_recorded_run_keeps_nobody_from_an_answer(store: Store) -> None:
    odd = {"tp": 3, "dp": 2, "pp": 5, "batch": "auto", "betas": [0.9, 0.95], "seed": 10**30}
    put(store, "odd", 20.0, place=7, configuration=odd)
    assert RunPredictor(store).answer(ASKED).runs == 7


def test_steps_are_finer_than_runs(store: Store) -> None:
    columns: dict[str, list[int | str | None]] = {name: [] for name in ("ts_ns", "run_id", "rank", "step")}
    columns["duration_seconds"] = []
    for number in range(6):
        for step in range(8):
            began = START_NS + number * GAP_SECONDS * SECOND
            row = (began + step * SECOND, f"r{number}", 0, step, 100_000_000 + number * 1_000_000)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    store.lake.append("test", to_table(STEP, columns))
    answer = RunPredictor(store).answer(ASKED)
    assert answer.outcome == "step_p50_seconds"
    assert distribution(answer).at(0.5)[0] == pytest.approx(0.102, abs=0.003)


def test_jobs_alone_are_told_by_their_name_and_number_of_nodes(tmp_path: Path) -> None:
    with Store.open(tmp_path / "jobs") as store:
        store.jobs.put(*(job(number, seconds=60.0 + number) for number in range(5)))
        answer = RunPredictor(store).answer(Question("relax", "lab", {}, 4))
        other = RunPredictor(store).answer(Question("relax", "lab", {}, 8))
    assert (answer.outcome, answer.basis, answer.cohort_runs) == ("job_seconds", PredictionBasis.COHORT, 5)
    assert 60 < distribution(answer).at(0.5)[0] < 64
    assert other.basis is PredictionBasis.WORKLOAD


def test_a_job_that_is_known_and_ends_is_heard_of(tmp_path: Path) -> None:
    with Store.open(tmp_path / "jobs") as store:
        store.jobs.put(job(0), job(1), job(2, "RUNNING"))
        predictor, asked = RunPredictor(store), Question("relax", "lab", {}, 4)
        assert predictor.answer(asked).cohort_runs == 2
        store.jobs.put(job(2))
        assert predictor.answer(asked).cohort_runs == 3


def test_jobs_of_two_systems_that_count_alike_are_all_learned_from(tmp_path: Path) -> None:
    with Store.open(tmp_path / "jobs") as store:
        store.jobs.put(*(job(number, system=system) for number in range(3) for system in ("lab", "other")))
        assert len(cases(store, Outcome.JOB)) == 6
        assert RunPredictor(store).answer(Question("relax", "lab", {}, 4)).runs == 6


def test_a_registered_model_answers_with_what_ran_since_and_is_named(store: Store) -> None:
    model = NextRunModel("run_seconds").fit(cases(store, Outcome.RUN))
    asked: list[Outcome] = []

    def registered(outcome: Outcome) -> Promoted:
        asked.append(outcome)
        return Promoted("run_seconds/7", lambda: model)

    predictor = RunPredictor(store, registered=registered)
    put(store, "r6", 11.0, place=6)
    answer = predictor.answer(ASKED)
    assert (answer.model, answer.cohort_runs) == ("run_seconds/7", 7)
    assert predictor.answers([ASKED]).model == "run_seconds/7"
    assert set(asked) == {Outcome.RUN}
    assert model.answer(ASKED).cohort_runs == 6


def test_a_registered_model_that_lacks_the_workload_does_not_answer(store: Store) -> None:
    strange = NextRunModel("run_seconds").fit(scaled().assign(workload="bert"))
    answer = RunPredictor(store, registered=lambda _: Promoted("run_seconds/1", lambda: strange)).answer(ASKED)
    assert (answer.model, answer.cohort_runs) == (None, 6)


def test_a_model_that_is_registered_or_taken_back_meanwhile_answers_or_does_not(store: Store) -> None:
    current: list[Promoted | None] = [None]
    predictor = RunPredictor(store, registered=lambda _: current[0])
    assert predictor.answer(ASKED).model is None
    model = NextRunModel("run_seconds").fit(cases(store, Outcome.RUN))
    current[0] = Promoted("run_seconds/1", lambda: model)
    assert predictor.answer(ASKED).model == "run_seconds/1"
    current[0] = None
    assert predictor.answer(ASKED).model is None


def test_the_promoted_model_of_the_registry_answers(store: Store) -> None:
    for number in range(6, 40):
        put(store, f"r{number}", 10.0 + number % 6 / 2, place=number)
    assert run_predictor(store).answer(ASKED).model is None
    made, registry = train(store, Outcome.RUN), Registry(store)
    record = registry.register("run_seconds", made.model, made.evidence)
    registry.promote("run_seconds", record.version, forced_because="a test")
    answer = run_predictor(store).answer(ASKED)
    assert (answer.model, answer.cohort_runs) == ("run_seconds/1", 40)
