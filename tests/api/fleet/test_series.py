"""Series over HTTP: the same as from the store here, as series and as rows of a table."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.api.conftest import START_NS
from tests.serving import answering

from crosswind.client.local import Local
from crosswind.client.remote import Remote
from crosswind.data.schema.series_question import SeriesQuestion, Statistic
from crosswind.data.store.store import Store

OF_RUN = "metric=step.duration_seconds&run=r0"
BEGIN = "2026-01-02T03:04:05Z"


def test_a_run_has_its_steps_by_rank_as_series(client: TestClient) -> None:
    answer = client.get(f"/v1/series?{OF_RUN}&from={BEGIN}&step=4&by=rank").json()
    assert answer["from_at"] == "2026-01-02T03:04:04.000000000Z"  # steps begin at multiples of 4 s
    assert (answer["step_seconds"], answer["left_out"], len(answer["series"])) == (4.0, 0, 2)
    first = answer["series"][0]
    assert (first["metric"], first["statistic"], first["unit"]) == ("step.duration_seconds", "mean", "s")
    assert first["labels"] == {"rank": "0"}
    assert first["values"][:4] == pytest.approx([0.1 + 0.001 / 3, 0.1005, 0.101, None])
    assert "null where it holds none" in answer["aggregation"]


def test_the_same_comes_as_rows(client: TestClient) -> None:
    rows = client.get(f"/v1/series/points?{OF_RUN}&from={BEGIN}&to=2026-01-02T03:04:13Z&step=4&by=rank").json()
    assert len(rows["points"]) == 2 * 3
    assert rows["points"][1] == {
        "began_ns": (START_NS // 4_000_000_000 + 1) * 4_000_000_000,
        "began_at": "2026-01-02T03:04:08.000000000Z",
        "metric": "step.duration_seconds",
        "statistic": "mean",
        "unit": "s",
        "of": "0",
        "value": pytest.approx(0.1005),
    }


def test_metrics_are_listed_part_by_part(client: TestClient) -> None:
    names, url = [], "/v1/metrics?limit=5"
    while url:
        part = client.get(url).json()
        names += [metric["name"] for metric in part["metrics"]]
        url = part["next_url"]
    assert len(names) == len(set(names)) > 5
    assert names == sorted(names)
    assert "step.duration_seconds" in names


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("metric=step.duration_secs&run=r0", 404, "did you mean step.duration_seconds?"),
        ("metric=step.duration_seconds&run=none", 404, "run 'none'"),
        ("metric=step.duration_seconds&job=none", 404, "job 'none'"),
        (f"{OF_RUN}&from=yesterday", 422, "from 'yesterday': expected a time such as"),
        (f"{OF_RUN}&step=-5s", 422, "step '-5s': expected a duration above 0"),
        (f"{OF_RUN}&statistic=median", 422, "statistic 'median': expected some of mean"),
        (f"{OF_RUN}&by=node", 422, "expected some of run, rank"),
        (f"{OF_RUN}&points=0", 422, "query.points"),
        (f"{OF_RUN}&to=2026-01-01", 422, "later than from"),
        (f"{OF_RUN}&from=9999-01-01", 422, "expected a year between 1970 and 2262"),
        (f"{OF_RUN}&resolution=1", 422, "expected by, device, from, job, limit, metric"),
        (",".join(["metric=a", *["a"] * 20]), 422, "metrics: 21 of them, expected 20 at most"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_expectation(
    client: TestClient, query: str, status: int, words: str
) -> None:
    answer = client.get(f"/v1/series?{query}")
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text


@pytest.fixture
def remote(store: Store) -> Iterator[Remote]:
    with answering(Path(store.home)) as url:
        yield Remote(url)


def test_both_clients_answer_the_same(store: Store, remote: Remote) -> None:
    local = Local(store)
    assert local.fleet.metrics() == remote.fleet.metrics() != ()
    every = SeriesQuestion(
        *(("step.duration_seconds", "step.input_seconds"), (), None, None, ("r0", "r1")),
        from_ns=START_NS,
        to_ns=START_NS + 100_000_000_007,
        step_seconds=0.25,
        statistics=(Statistic.MIN, Statistic.P99),
        by=(),
    )
    for question in (
        every,
        SeriesQuestion(("step.duration_seconds",), runs=("r1",)),
        SeriesQuestion(("step.duration_seconds",), job="12_3"),
    ):
        assert local.fleet.series(question) == remote.fleet.series(question)
