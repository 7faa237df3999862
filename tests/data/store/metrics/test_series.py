"""Series of stored metrics: exact values by step, of the times that may be seen, missing where nothing was sampled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.answers.series import points
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import Column, Kind, MetricSet, Scalar, with_node_keys
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.series_question import SeriesQuestion, Statistic
from crosswind.data.schema.steps import STEP
from crosswind.data.store.metrics import samples
from crosswind.data.store.metrics.series import series
from crosswind.data.store.metrics.stored import stored_metrics
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
START = 1_767_312_000 * SECOND  # 2026-01-02T00:00:00Z
SWEEPS, APART = 12, 10
BOTH = with_node_keys(
    MetricSet(
        "meter",
        "a counter and a gauge",
        (
            Column("sent_bytes_total", "bytes sent", Kind.COUNTER, unit="By", scale=4.0),
            Column("power_watts", "power", dtype="float64", unit="W"),
        ),
    )
)
SENT, POWER = "meter.sent_bytes_total", "meter.power_watts"
ANN = RowRule(users=frozenset({"ann"}))


def sample(store: Store, node: str, sent: Sequence[int | None], *, device: str = "d0", boots: str = "") -> None:
    """Store sweeps of a node, 10 s apart, whose power is the number of the sweep; a letter of `boots` a sweep."""
    times = [START + number * APART * SECOND for number in range(len(sent))]
    columns: dict[str, Sequence[Scalar]] = {
        "ts_ns": times,
        "mono_ns": times,
        "node": [node] * len(sent),
        "device": [device] * len(sent),
        "boot_id": list(boots or "b" * len(sent)),
        "sent_bytes_total": sent,
        "power_watts": [float(number) for number in range(len(sent))],
    }
    store.lake.append(f"{node.replace('.', '-')}-{device}", to_table(BOTH, columns))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def asked(*metrics: str, **others: object) -> SeriesQuestion:
    times = {"from_ns": START, "to_ns": START + SWEEPS * APART * SECOND, "step_seconds": 30.0}
    return SeriesQuestion(metrics, **{**times, **others})  # type: ignore[arg-type]


def values(store: Store, question: SeriesQuestion) -> Mapping[tuple[str, ...], tuple[float | None, ...]]:
    return {(*one.labels.values(), one.statistic): one.values for one in series(store, question).series}


def test_a_gauge_has_a_mean_a_step(store: Store) -> None:
    sample(store, "n1", [0] * SWEEPS)
    answer = series(store, asked(POWER))
    assert [(one.labels, one.unit, one.values) for one in answer.series] == [
        ({"node": "n1", "device": "d0"}, "W", (1.0, 4.0, 7.0, 10.0))
    ]
    assert (answer.from_ns, answer.step_seconds, answer.left_out) == (START, 30.0, 0)


def test_other_statistics_are_of_the_same_samples(store: Store) -> None:
    sample(store, "n1", [0] * SWEEPS)
    wanted = (Statistic.MIN, Statistic.MAX, Statistic.P50)
    assert [one.values[1] for one in series(store, asked(POWER, statistics=wanted)).series] == [3.0, 5.0, 4.0]


def test_a_counter_has_its_growth_a_second_in_base_units(store: Store) -> None:
    sample(store, "n1", [number * 100 for number in range(SWEEPS)])
    assert values(store, asked(SENT)) == {("n1", "d0", "rate"): (40.0,) * 4}
    grown = values(store, asked(SENT, statistics=(Statistic.SUM,)))
    assert grown == {("n1", "d0", "sum"): (800.0, 1200.0, 1200.0, 1200.0)}


def test_the_first_growth_is_that_since_the_sample_before(store: Store) -> None:
    sample(store, "n1", [number * 100 for number in range(SWEEPS)])
    later = asked(SENT, from_ns=START + 30 * SECOND, to_ns=START + 60 * SECOND, statistics=(Statistic.SUM,))
    assert values(store, later) == {("n1", "d0", "sum"): (1200.0,)}
    of_node = replace(later, nodes=("n1",))
    assert values(store, of_node) == {("n1", "d0", "sum"): (1200.0,)}


def test_what_was_not_sampled_is_missing_and_a_reset_is_no_growth(store: Store) -> None:
    sample(store, "n1", [100, 200, 300, None, None, None, 5, 15, 25, 35, 45, 55], boots="bbbbbbcccccc")
    [sent] = values(store, asked(SENT)).values()
    assert sent == (40.0, None, 4.0, 4.0)
    [power] = values(store, asked(POWER, to_ns=START + 200 * SECOND)).values()
    assert power == (1.0, 4.0, 7.0, 10.0, None, None, None)


def test_series_are_grouped_by_what_is_asked_for(store: Store) -> None:
    for node in ("n1", "n2"):
        for device in ("d0", "d1"):
            sample(store, node, [number * 100 for number in range(SWEEPS)], device=device)
    assert values(store, asked(SENT, by=("node",))) == {("n1", "rate"): (80.0,) * 4, ("n2", "rate"): (80.0,) * 4}
    assert values(store, asked(SENT, by=())) == {("rate",): (160.0,) * 4}
    both = asked(POWER, by=("node",), nodes=("n2",), statistics=(Statistic.SUM,))
    assert values(store, both) == {("n2", "sum"): (2.0, 8.0, 14.0, 20.0)}


def test_some_devices_alone_may_be_wanted(store: Store) -> None:
    for device in ("d0", "d1"):
        sample(store, "a", [100 * number for number in range(SWEEPS)], device=device)
    question = SeriesQuestion((SENT, POWER), from_ns=START, to_ns=START + SWEEPS * APART * SECOND)
    labels = [one.labels["device"] for one in series(store, replace(question, devices=("d1",))).series]
    assert labels == ["d1", "d1"]
    assert [one.values for one in series(store, replace(question, devices=("d2",))).series] == []


def test_counters_of_many_nodes_are_read_some_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in ("n1", "n2", "n3"):
        sample(store, node, [number * 100 for number in range(SWEEPS)])
    at_once = values(store, asked(SENT)), values(store, asked(SENT, by=()))
    monkeypatch.setattr(samples, "CELLS_AT_ONCE", 1)
    assert (values(store, asked(SENT)), values(store, asked(SENT, by=()))) == at_once
    with pytest.raises(InvalidInputError, match=r"p95.*expected sum, rate, min, max, or by node"):
        series(store, asked(SENT, by=(), statistics=(Statistic.P95,)))


def test_steps_are_no_shorter_than_samples_are_apart(store: Store) -> None:
    sample(store, "n1", [0] * SWEEPS)
    answer = series(store, asked(POWER, step_seconds=None))
    assert (answer.step_seconds, len(answer.series[0].values)) == (10.0, SWEEPS)
    assert series(store, asked(POWER, step_seconds=None, points=4)).step_seconds == 30.0


def test_series_beyond_the_limit_are_counted(store: Store) -> None:
    for number in range(5):
        sample(store, f"n{number}", [0] * SWEEPS)
    answer = series(store, asked(POWER, SENT, limit=3))
    assert ([one.labels["node"] for one in answer.series], answer.left_out) == (["n0", "n1", "n2"], 7)


def test_points_are_the_same_as_rows(store: Store) -> None:
    sample(store, "n1", [0] * SWEEPS)
    rows = list(points(series(store, asked(POWER))))
    assert [(row.began_at, row.of, row.value) for row in rows[:2]] == [
        ("2026-01-02T00:00:00.000000000Z", "n1 d0", 1.0),
        ("2026-01-02T00:00:30.000000000Z", "n1 d0", 4.0),
    ]


def test_compaction_changes_no_series(store: Store) -> None:
    for node in ("n1", "n2"):
        sample(store, node, [number * 100 for number in range(SWEEPS)])
    before = series(store, asked(SENT, POWER))
    compact(store.lake, settle_seconds=0)
    assert series(store, asked(SENT, POWER)) == before


def run(run_id: str, user: str, first: int, last: int, **others: object) -> Run:
    """A run on n1 from one sweep to another."""
    times = {"started_ns": START + first * APART * SECOND, "ended_ns": START + last * APART * SECOND}
    return Run(run_id, "gpt", "lab", RunState.COMPLETED, nodes=("n1",), user=user, **times, **others)  # type: ignore[arg-type]


def test_of_a_node_others_see_the_times_of_their_own_runs(store: Store) -> None:
    sample(store, "n1", [number * 100 for number in range(SWEEPS)])
    sample(store, "n2", [number * 100 for number in range(SWEEPS)])
    with store.catalog.write() as session:
        session.runs.merge(run("mine", "ann", 1, 3))
        session.runs.merge(run("mine-too", "ann", 9, 11))
        session.runs.merge(run("theirs", "bob", 4, 8))
    seen = store.seen_by(ANN)
    assert values(seen, asked(POWER)) == {("n1", "d0", "mean"): (1.5, None, None, 9.5)}
    grown = values(seen, asked(SENT, statistics=(Statistic.SUM,)))
    assert grown == {("n1", "d0", "sum"): (400.0, None, None, 400.0)}  # nothing from sweep 2 to 9, nor before 1
    assert values(seen, asked(POWER, nodes=("n2",))) == {}
    with pytest.raises(NotFoundError, match="theirs"):
        series(seen, asked(POWER, runs=("theirs",)))
    assert values(store.seen_by(RowRule(users=frozenset({"zoe"}))), asked(POWER)) == {}


def test_of_a_node_others_see_the_times_of_their_own_jobs_under_the_name_of_its_samples(store: Store) -> None:
    sample(store, "n1.lab", [number * 100 for number in range(SWEEPS)])
    times = {"started_ns": START + 30 * SECOND, "ended_ns": START + 60 * SECOND}
    store.jobs.put(Job("lab", "7", user="ann", nodes=("n1",), state="COMPLETED", **times))
    store.jobs.put(Job("lab", "8", user="bob", nodes=("n1",), state="COMPLETED", **times))
    with store.catalog.write() as session:
        session.places.merge(Allocation("8", "n1", "n1.lab", Source.PROLOG, "lab", **times))
    seen = store.seen_by(ANN)
    assert values(seen, asked(POWER)) == {("n1.lab", "d0", "mean"): (None, 4.0, None, None)}
    assert values(seen, asked(POWER, job="7", from_ns=None, to_ns=None)) == {("n1.lab", "d0", "mean"): (4.0,)}
    with pytest.raises(NotFoundError, match="job '8'"):
        series(seen, asked(POWER, job="8"))


def test_a_run_has_series_of_its_nodes_in_its_time(store: Store) -> None:
    sample(store, "n1", [number * 100 for number in range(SWEEPS)])
    sample(store, "n2", [0] * SWEEPS)
    with store.catalog.write() as session:
        session.runs.merge(run("r1", "ann", 3, 5))
    answer = series(store, SeriesQuestion((POWER,), runs=("r1",)))
    assert [(one.labels["node"], one.values) for one in answer.series] == [("n1", (3.0, 4.0))]


def test_metrics_of_runs_are_by_rank(store: Store) -> None:
    places = [(step, rank) for step in range(6) for rank in range(3)]
    columns = {
        "ts_ns": [START + step * 10 * SECOND for step, _ in places],
        "run_id": ["r1"] * len(places),
        "rank": [rank for _, rank in places],
        "step": [step for step, _ in places],
        "duration_seconds": [(1 + rank) * SECOND for _, rank in places],
    }
    store.lake.append("steps", to_table(STEP, columns))
    with store.catalog.write() as session:
        session.runs.merge(run("r1", "ann", 0, 6, job_id="5"))
    of_rank = values(store, asked("step.duration_seconds", runs=("r1",), by=("rank",)))
    assert of_rank == {(str(rank), "mean"): (1.0 + rank, 1.0 + rank, None, None) for rank in range(3)}
    assert values(store, asked("step.duration_seconds", job="5", by=(), statistics=(Statistic.MAX,))) == {
        ("max",): (3.0, 3.0, None, None)
    }
    assert series(store.seen_by(ANN), asked("step.duration_seconds", runs=("r1",))).series != ()
    with pytest.raises(NotFoundError):
        series(store.seen_by(RowRule()), asked("step.duration_seconds", runs=("r1",)))
    with pytest.raises(InvalidInputError, match=r"step\.duration_seconds is of runs: name some"):
        series(store, asked("step.duration_seconds"))


def test_metrics_are_listed_with_unit_kind_and_keys(store: Store) -> None:
    assert stored_metrics(store.lake) == ()
    sample(store, "n1", [0])
    assert [(one.name, one.kind, one.unit, one.by, one.of) for one in stored_metrics(store.lake)] == [
        (POWER, "gauge", "W", ("node", "device"), "node"),
        (SENT, "counter", "By", ("node", "device"), "node"),
    ]


@pytest.mark.parametrize(
    ("question", "expectation"),
    [
        ({"by": ("rank",)}, "by 'rank': meter.power_watts has no such key, expected some of node, device"),
        ({"statistics": (Statistic.RATE,)}, "statistic 'rate': meter.power_watts is a gauge: expected mean"),
        ({"step_seconds": 0.001}, "step 0.001 s: 120000 steps from .* expected 10000 at most"),
        ({"from_ns": START + 999 * SECOND}, "expected a time that is later than from"),
        ({"points": 0}, "points 0: expected 1 to 10000"),
        ({"limit": 1001}, "limit 1001: expected 1 to 1000"),
        ({"step_seconds": float("nan")}, "step nan: expected"),
        ({"job": "1", "runs": ("r",)}, "expected one of the two"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_expectation(
    store: Store, question: Mapping[str, object], expectation: str
) -> None:
    sample(store, "n1", [0] * SWEEPS)
    with pytest.raises(InvalidInputError, match=expectation):
        series(store, asked(POWER, **question))


def test_an_unknown_metric_is_refused_with_the_nearest(store: Store) -> None:
    sample(store, "n1", [0])
    with pytest.raises(NotFoundError, match=r"did you mean meter\.power_watts\?"):
        series(store, asked("meter.power_wats"))


def test_too_many_samples_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(store, "n1", [0] * SWEEPS)
    monkeypatch.setattr(samples, "ROWS_MAX", 5)
    with pytest.raises(InvalidInputError, match="12 samples, expected 5 at most"):
        series(store, asked(POWER))
