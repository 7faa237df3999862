import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages.causes import selection
from crosswind.dashboards.pages.causes.selection import SelectionView, view
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.render import Address, render
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.schema.answers.cohorts import CohortComparison, FeatureDifference, FeatureKind
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run, RunState, cohort_digest
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.store.store import Store

RUNS = 60
START_NS, HOUR_NS = 1_760_000_000_000_000_000, 3_600_000_000_000


def _run(number: int, luck: random.Random) -> Run:
    node = "n7" if number % 4 == 0 else luck.choice(["n1", "n2", "n3"])
    start = START_NS + number * HOUR_NS
    facts = {"configuration": {"batch": 8}, "nodes": ("n0", node), "software": {"torch": luck.choice(["2.0", "2.1"])}}
    return Run(
        f"r{number:02}", "gpt", "lab", RunState.COMPLETED, 2, started_ns=start, ended_ns=start + HOUR_NS, **facts
    )


def store_runs(store: Store, *, every: int = 4) -> str:
    """60 runs of one cohort: every fourth ran on n7; those on it, or another number, took 1.5 times as long a step."""
    luck = random.Random(3)
    runs = [_run(number, luck) for number in range(RUNS)]
    with store.catalog.write() as session:
        session.runs.put_all(runs)
    for number, run in enumerate(runs):
        mean = (0.3 if number % every == 0 else 0.2) + luck.gauss(0, 0.001)
        outcome = RunVerdict(run.run_id, steps=100, step_p50_seconds=mean, step_mean_seconds=mean, step_cov_ratio=0.01)
        with store.catalog.write() as session:
            session.verdicts.put_features([StoredFeatures(outcome, 1, "none", None, 0)], {run.run_id: ()})
    return cohort_digest(runs[0])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    with Store.open(Path(tmp_path_factory.mktemp("selection")) / "store") as store:
        yield store, store_runs(store)


def seen(stored: tuple[Store, str], **query: str) -> SelectionView:
    store, cohort = stored
    return view(Local(store), PageQuery({"cohort": cohort, **query}))


def test_slow_runs_are_set_apart_by_their_node(stored: tuple[Store, str]) -> None:
    shown = seen(stored, slower="1.2")
    said = "The 15 runs selected ran on node n7 more often: 100 % of them, 0 % of the other 45"
    assert shown.sentence.startswith(said)
    assert (len(shown.selected), shown.others) == (15, 45)
    assert {row.origin for row in shown.rows if row.difference.differs} == {"node"}
    first = shown.rows[0].difference
    assert (shown.rows[0].words, shown.rows[0].origin, first.differs) == ("node n7", "node", True)
    assert first.q < 0.01 < 0.9 < first.rho
    assert {row.origin for row in shown.rows} >= {"node", "software", "time of start"}
    assert "outcome" not in {row.origin for row in shown.rows}
    assert [chart.name for chart in shown.charts] == ["cohort", "effects"]
    assert shown.charts[0].title == "15 of 60 runs are selected"


def test_runs_are_selected_by_time_step_and_id(stored: tuple[Store, str]) -> None:
    day = seen(stored, **{"from": "2025-10-09T09:53:20", "to": "2025-10-09T12:53:20"})  # r00 began at 08:53:20 UTC
    assert day.selected == ("r01", "r02", "r03")
    assert day.rule.words == "began 2025-10-09 09:53:20 UTC or later, began before 2025-10-09 12:53:20 UTC"
    assert seen(stored, **{"from": "2025-10-09T11:53:20+02:00", "faster": "1.2"}).selected[0] == "r01"
    assert seen(stored, runs="r05,r01,other").selected == ("r01", "r05")
    assert len(seen(stored).selected) == RUNS


def test_what_goes_by_lot_does_not_set_runs_apart(stored: tuple[Store, str]) -> None:
    ids = ",".join(f"r{number:02}" for number in random.Random(1).sample(range(RUNS), 15))
    shown = seen(stored, runs=ids)
    assert shown.sentence == "Nothing that is stored sets the 15 runs selected apart from the other 45."
    assert shown.tested > 5


def test_too_few_are_not_compared_and_none_says_so(stored: tuple[Store, str]) -> None:
    few = seen(stored, runs="r01,r02")
    assert few.sentence.startswith("The 2 runs selected cannot be compared with the other 58")
    assert few.warnings[0].startswith("2 runs of the cohort and 58 others have ended")
    assert seen(stored, slower="9").sentence == "No run of the cohort is selected by these conditions."


def test_times_have_their_unit_and_counts_have_none(stored: tuple[Store, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def difference(name: str, own: float, other: float) -> FeatureDifference:
        certainty = (0.9, 0.8, 1.0, 0.001, 0.001, 1.0)
        return FeatureDifference(FeatureKind.EVIDENCE, name, False, 15, 45, own, other, *certainty)

    features = (difference("run_queue_wait", 0.0918, 0.0828), difference("minor_faults", 6276.0, 6251.0))
    comparison = CohortComparison("c", 15, 45, False, features, ())
    monkeypatch.setattr(selection, "compare_selection", lambda *_: comparison)
    shown = seen(stored, slower="1.2")
    said = "The 15 runs selected have a higher run queue wait: median 91.8 ms a step, against 82.8 ms of the other 45"
    assert shown.sentence.startswith(said)
    html = render(selection.PAGE, shown, Address("./", "/selection"))
    assert ">91.8 ms</td>" in html
    assert ">6\u202f276</td>" in html


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        ({"cohort": ""}, InvalidInputError, "cohort is missing"),
        ({"cohort": "nope"}, NotFoundError, "'nope' has no run"),
        ({"from": "soon"}, InvalidInputError, "from='soon': expected a time"),
        ({"to": "2025-13-01"}, InvalidInputError, "expected a time"),
        ({"slower": "nan"}, InvalidInputError, "slower='nan': expected a number"),
        ({"runs": ",".join(map(str, range(201)))}, InvalidInputError, "201 of them, expected 200 at most"),
    ],
)
def test_wrong_parameters_are_refused(
    stored: tuple[Store, str], query: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        seen(stored, **query)
