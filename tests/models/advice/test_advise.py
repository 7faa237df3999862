from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.job import Job
from crosswind.data.schema.question import Price, Question, Scales
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.advice.advise import scaling_advice, walltime_advice
from crosswind.models.advice.startup import measured_startup
from crosswind.models.next_run.predictor import RunPredictor

SECOND = 1_000_000_000
START_NS = 1_767_323_045 * SECOND
ASKED = Question("gpt", "lab", {"batch": 8}, 4)
LOADING_SECONDS = 90.0
RUN_SECONDS = {1: 1000, 2: 600, 4: 400}


def put(store: Store, number: int, nodes: int, *, job_id: str | None = None, system: str = "lab") -> None:
    """A run of 4 ranks a node, one an hour."""
    began = START_NS + number * 3600 * SECOND
    run = Run(
        *(f"{system}-r{number}", "gpt", system, RunState.COMPLETED),
        world_size=4 * nodes,
        configuration={"batch": 8},
        job_id=job_id,
        nodes=tuple(f"n{node}" for node in range(nodes)),
        started_ns=began,
        ended_ns=began + RUN_SECONDS[nodes] * SECOND,
    )
    with store.catalog.write() as session:
        session.runs.merge(run)


def job(job_id: str, seconds: float, *, name: str = "gpt-job", nodes: int = 1, system: str = "lab") -> Job:
    return Job(
        *(system, job_id, name), state="COMPLETED", node_count=nodes, started_ns=START_NS, elapsed_seconds=seconds
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Three runs on each of 1, 2 and 4 nodes, in no job."""
    with Store.open(tmp_path / "store") as opened:
        for number in range(9):
            put(opened, number, (1, 2, 4)[number % 3])
        yield opened


def test_a_limit_is_the_run_and_what_comes_before_it(store: Store) -> None:
    advice = walltime_advice(RunPredictor(store), ASKED, 0.9, startup_seconds=120.0)
    assert (advice.startup_seconds, advice.answer.outcome) == (120.0, "run_seconds")
    assert advice.limit.quantile_seconds >= 1000 * 0.99
    assert advice.limit.seconds >= advice.limit.quantile_seconds + 120
    assert advice.limit.seconds - advice.limit.quantile_seconds - 120 < 60  # whole minutes


def test_what_comes_before_runs_is_measured_on_jobs_that_held_one(store: Store) -> None:
    for number in range(10, 14):
        put(store, number, 1, job_id=str(number))
        store.jobs.put(job(str(number), 1000 + LOADING_SECONDS))
    assert measured_startup(store, "gpt", "lab") == pytest.approx(LOADING_SECONDS)
    assert walltime_advice(RunPredictor(store), ASKED, 0.9).startup_seconds == pytest.approx(LOADING_SECONDS)


def test_jobs_of_two_runs_of_another_system_or_shorter_than_their_run_tell_no_startup(store: Store) -> None:
    for number in (10, 11):
        put(store, number, 1, job_id="both")
    put(store, 12, 1, job_id="elsewhere")
    put(store, 13, 1, job_id="short")
    store.jobs.put(job("both", 5000), job("elsewhere", 5000, system="other"), job("short", 10))
    assert measured_startup(store, "gpt", "lab") == 0.0


def test_nothing_known_is_no_startup(store: Store) -> None:
    assert measured_startup(store, "bert", "lab") == 0.0


def test_the_limit_of_a_job_has_its_startup_in_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "jobs") as store:
        store.jobs.put(*(job(str(number), 600.0, name="relax", nodes=2) for number in range(5)))
        advice = walltime_advice(RunPredictor(store), Question("relax", "lab", {}, 2), 0.5)
    assert (advice.startup_seconds, advice.answer.outcome) == (0.0, "job_seconds")
    assert advice.limit.quantile_seconds == pytest.approx(600.0)


def test_scales_that_ran_are_told_by_their_cohorts(store: Store) -> None:
    advice = scaling_advice(RunPredictor(store), ASKED, Scales((1, 2, 4), 4), Price(node_watts=500.0))
    assert [answer.basis for answer in advice.answers] == ["cohort"] * 3
    assert [answer.world_size for answer in advice.answers] == [4, 8, 16]
    assert [point.speedup for point in advice.curve.points] == pytest.approx([1, 1000 / 600, 2.5])
    assert [point.joules for point in advice.curve.points] == pytest.approx([500e3, 600e3, 800e3])
    assert (advice.curve.fastest, advice.advised) == (4, advice.curve.knee)
    assert advice.change is None


def test_an_elastic_job_is_told_how_many_nodes_to_take_or_give(store: Store) -> None:
    predictor = RunPredictor(store)
    for deadline, now, expected in ((2000.0, 4, -3), (700.0, 1, 1), (450.0, 1, 3)):
        advice = scaling_advice(predictor, ASKED, Scales((1, 2, 4), 4, deadline, now), Price())
        assert advice.change == expected
    none = scaling_advice(predictor, ASKED, Scales((1, 2, 4), 4, 1.0, 4), Price())
    assert (none.advised, none.change) == (None, None)


def test_the_scale_of_a_job_is_its_number_of_nodes_whatever_ranks_it_has(tmp_path: Path) -> None:
    with Store.open(tmp_path / "jobs") as store:
        for nodes in (1, 2):
            store.jobs.put(*(job(f"{nodes}-{number}", 600.0, name="relax", nodes=nodes) for number in range(3)))
        advice = scaling_advice(RunPredictor(store), Question("relax", "lab", {}, 1), Scales((1, 2), 8), Price())
    assert [(answer.world_size, answer.basis) for answer in advice.answers] == [(1, "cohort"), (2, "cohort")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"node_counts": ()}, "0 numbers of nodes: expected 1 to 64"),
        ({"node_counts": tuple(range(1, 66))}, "65 numbers of nodes: expected 1 to 64"),
        ({"ranks_per_node": 0}, "ranks_per_node 0: expected 1 or more"),
        ({"deadline_seconds": 0.0}, r"deadline_seconds 0\.0: expected more than 0"),
        ({"deadline_seconds": float("nan")}, "deadline_seconds nan: expected more than 0"),
        ({"now": 0}, "now 0: expected 1 node or more"),
    ],
)
def test_scales_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Scales(**{"node_counts": (1,), "ranks_per_node": 1, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("counts", [(2, 1), (1, 1)])
def test_numbers_of_nodes_that_do_not_rise_are_refused(store: Store, counts: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="expected some, rising, the first at least 1"):
        scaling_advice(RunPredictor(store), ASKED, Scales(counts, 4), Price())


def test_a_plan_that_another_scale_cannot_have_is_refused(store: Store) -> None:
    fixed = Question("gpt", "lab", {"batch": 8, "dp": 2, "tp": 2, "pp": 1}, 4)
    with pytest.raises(InvalidInputError, match="data 2 x tensor 2 x pipeline 1 make 4 ranks, expected 8"):
        scaling_advice(RunPredictor(store), fixed, Scales((1, 2), 4), Price())
