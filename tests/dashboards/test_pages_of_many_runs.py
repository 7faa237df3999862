"""Contents of the pages about the whole fleet, over stores whose truth is known."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.models.forecast.stored_weather import store_weather
from tests.models.interference.stored import neighbourhood
from tests.models.preflight.stored_checks import store_checks
from tests.models.registry.models import later_runs, poor, train, trained
from tests.models.stragglers.made_up_fleet import drawn_nodes, store_fleet
from tests.serving import own_client, patient_app

from crosswind.client.local import Local
from crosswind.dashboards.pages.causes import counters, interference, regressions
from crosswind.dashboards.pages.fleet import checks, stragglers
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.tuning import models
from crosswind.dashboards.wording import percent
from crosswind.data.schema.answers.stragglers import PeerKind
from crosswind.data.schema.errors import NotFoundError, UnavailableError
from crosswind.data.schema.model import Evidence
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.baseline import Ewma
from crosswind.models.registry.drift import drift_of
from crosswind.models.registry.registry import Registry
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training import drifting

SLOWER_FROM = 100


def client(store: Store) -> Local:
    return Local(store)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """80 runs on 4 of 12 nodes each, of which n3 takes 1.2 times as long."""
    home = tmp_path_factory.mktemp("fleet")
    store_fleet(home, drawn_nodes(80, 4, 12), {3: np.log(1.2)})
    with Store.open(home) as store:
        yield store


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as store:
        yield store


def page(store: Store, address: str) -> str:
    with own_client(patient_app(store), base_url="http://localhost:8000") as client:
        answer = client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    return answer.text


def test_the_straggler_leads_and_can_be_excluded(fleet: Store) -> None:
    shown = stragglers.view(client(fleet), PageQuery())
    assert shown.sentence.startswith("Node n3 takes 1.1")
    assert (shown.exclude, shown.named, shown.listed, shown.rows[0].name) == ("--exclude=n3", 1, 16, "n3")
    assert [chart.name for chart in shown.charts] == ["fleet"]
    assert shown.charts[0].title.startswith("n3 takes 1.1")
    html = page(fleet, "/stragglers")
    assert '<code id="copy-exclude">--exclude=n3</code> <button type="button" data-copy="copy-exclude" hidden>' in html
    assert '<a class="row-link" href="./stragglers?node=n3"' in html


def test_one_kind_and_one_node_can_be_asked_for(fleet: Store) -> None:
    places = stragglers.view(client(fleet), PageQuery({"kind": "rank place"}))
    assert {row.kind for row in places.rows} == {PeerKind.PLACE}
    assert places.listed == 4
    of_node = stragglers.view(client(fleet), PageQuery({"node": "n7"}))
    assert [row.name for row in of_node.rows] == ["n7"]
    assert "was in no run that can be compared" in page(fleet, "/stragglers?node=n99")


def test_a_table_holds_no_more_rows_than_asked_for(fleet: Store) -> None:
    shown = stragglers.view(client(fleet), PageQuery({"limit": "2"}))
    assert (len(shown.rows), shown.listed) == (2, 16)
    assert 'href="./stragglers?limit=500">Show all 16</a>' in page(fleet, "/stragglers?limit=2")


def test_nothing_stands_out_among_equals(tmp_path: Path) -> None:
    store_fleet(tmp_path, drawn_nodes(80, 4, 12), {})
    with Store.open(tmp_path) as store:
        shown = stragglers.view(client(store), PageQuery())
    assert shown.sentence.startswith("Nothing is surely slower than its peers, of 16 ")
    assert (shown.exclude, shown.charts[0].title) == ("", "No node of 12 is surely slower than its peers")


def test_a_regression_is_reported_with_what_changed_then(tmp_path: Path) -> None:
    store_weather(tmp_path, 160, lambda hours: 1.25 if hours >= SLOWER_FROM else 1.0)
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            for hour, run in enumerate(all_runs(store)):
                session.runs.merge(replace(run, software={"torch": "2.12" if hour < SLOWER_FROM else "2.13"}))
        shown = regressions.view(client(store), PageQuery())
        of_one = regressions.view(client(store), PageQuery({"workload": "bert"}))
        html = page(store, "/regressions?workload=bert")
    assert (shown.total, shown.slower, len(shown.changes)) == (2, 2, 2)
    assert shown.sentence.endswith("its time since 2026-01-05; software torch changed just then.")
    assert (of_one.drawn, of_one.total) == (("lab", "bert"), 1)
    assert of_one.charts[0].title.startswith("bert became slower on 2026-01-05, 1.2")
    assert '<th scope="row" data-label="Changed">software torch</th>' in html


def test_a_steady_workload_is_drawn_too(fleet: Store) -> None:
    shown = regressions.view(client(fleet), PageQuery())
    assert shown.sentence == "Nothing changed for good in 1 workload, over 80 runs."
    assert shown.charts[0].title == "bert kept one level over 80 runs"


def test_who_slows_runs_is_named_by_pseudonym_and_the_others_are_not_shown_to(empty: Store) -> None:
    neighbourhood(empty)
    shown = interference.view(client(empty), PageQuery())
    blamed, other = shown.rows
    assert (shown.blamed, shown.total, blamed.is_blamed, other.is_blamed) == (1, 2, True, False)
    assert blamed.name.startswith("user u-")
    assert blamed.suspect.slowdown_ratio == pytest.approx(1.2, rel=0.05)
    html = page(empty, "/interference?example=no")
    assert "mallory" not in html
    assert (html.count("slows runs</span>"), html.count("not shown</span>")) == (1, 1)
    assert "No switches or racks are known: only neighbours on the same nodes are looked for." in html


def test_few_runs_say_what_is_missing(fleet: Store, empty: Store) -> None:
    store_weather(empty.home, 8)
    for view in (counters.view, interference.view):
        shown = view(client(empty), PageQuery())
        assert shown.charts == shown.rows == ()
        assert "expected 20 or more" in shown.warnings[-1]
    assert "No counter can be ranked yet: 8 of 8 runs can be compared." in page(empty, "/counters?example=no")
    unsampled = counters.view(client(fleet), PageQuery())
    assert unsampled.warnings[0].startswith("nothing was sampled on the runs' nodes")
    assert unsampled.sentence == "No counter can be ranked yet: nothing was sampled during 80 runs."
    assert "while they ran: <code>crosswind agent</code> or <code>crosswind run</code> does." in page(
        fleet, "/counters?example=no"
    )


def test_runs_without_an_end_say_that_nothing_is_known_of_them(empty: Store) -> None:
    with empty.catalog.write() as session:
        session.runs.merge(Run("r0", "bert", "lab", RunState.COMPLETED))
    for address in ("/counters?example=no", "/interference?example=no"):
        html = page(empty, address)
        assert "yet.</h1>" in html
        assert "no run of it has completed" in html


def test_the_newest_check_leads_and_an_older_one_can_be_chosen(empty: Store) -> None:
    store_checks(empty, checks=4, nodes=8, slow={2: "n5"})
    newest = checks.view(client(empty), PageQuery())
    assert (newest.sentence, newest.exclude, newest.reasons) == ("8 nodes measured as usual.", "", ())
    assert [row.excluded for row in newest.checks] == [(), ("n5",), (), ()]
    older = checks.view(client(empty), PageQuery({"check": "C2"}))
    assert (older.sentence, older.exclude) == ("1 of 8 nodes should be left out: n5.", "--exclude=n5")
    assert (older.findings[0].where, older.findings[0].finding.is_slow) == ("n5", True)
    assert older.charts[0].title == "n5 reaches 50 % of the usual gemm"
    assert older.reasons[0].reason.startswith("gemm: 50%")
    first = checks.view(client(empty), PageQuery({"check": "C0", "limit": "3"}))
    assert (len(first.findings), first.selected and first.selected.values) == (3, 8)
    assert 'aria-current="true"' in page(empty, "/checks?check=C2")
    with pytest.raises(NotFoundError, match="'C9' is not among the newest 20"):
        checks.view(client(empty), PageQuery({"check": "C9"}))


def test_before_the_first_check_there_is_the_command(empty: Store) -> None:
    assert "<code>srun --ntasks-per-node=1 crosswind check</code>" in page(empty, "/checks?example=no")
    assert "No check of far is stored." in page(empty, "/checks?system=far")


def test_models_are_compared_with_their_baselines(empty: Store) -> None:
    registry, evidence = Registry(empty), trained().evidence
    for version_evidence in (evidence, evidence, poor(evidence)):
        registry.register("step-time", Ewma(), version_evidence)
    registry.promote("step-time", 1)
    shown = models.view(client(empty), PageQuery())
    assert shown.sentence.startswith("1 model of 1 answers; step-time errs ")
    assert re.fullmatch(
        r"Version 1 errs \d+ % less than the best naive baseline; its .+; no later run says yet whether it drifts\.",
        shown.trust,
    )
    assert (shown.selected and shown.selected.version, [row.version for row in shown.versions]) == (1, [3, 2, 1])
    assert [chart.name for chart in shown.charts] == ["leaderboard", "coverage"]
    newest = models.view(client(empty), PageQuery({"version": "3"}))
    assert newest.selected is not None
    assert newest.selected.objection is not None
    assert "should not be promoted: its loss is" in page(empty, "/models?model=step-time&version=3")
    assert "crosswind models promote step-time 2" in page(empty, "/models?version=2")
    for query in ({"model": "nope"}, {"version": "9"}):
        with pytest.raises(NotFoundError, match="is not registered"):
            models.view(client(empty), PageQuery(query))


def test_the_headline_of_models_agrees_with_their_numbers(empty: Store) -> None:
    registry, evidence = Registry(empty), trained().evidence

    def headline(name: str, made: Evidence) -> str:
        registry.register(name, Ewma(), made)
        none_answers = models.view(client(empty), PageQuery()).sentence
        registry.promote(name, 1, forced_because="a trial")
        return f"{none_answers} {models.view(client(empty), PageQuery()).sentence}"

    said = headline("other", replace(evidence, baselines={}))
    assert said.startswith("No model answers yet: no version of 1 model is promoted. ")
    assert said.endswith(" 1 model of 1 answers, compared with no baseline.")
    assert headline("step-time", poor(evidence)).endswith(
        " 2 models of 2 answer; step-time errs 100 % more than the best naive baseline."
    )


def test_without_a_model_there_is_the_command(empty: Store) -> None:
    html = page(empty, "/models?example=no")
    assert "<h1>No model is registered yet.</h1>" in html
    assert "crosswind models train step_p50_seconds" in html


def test_a_promoted_model_that_was_taken_back_says_why(empty: Store) -> None:
    registry, evidence = Registry(empty), trained().evidence
    for version in (1, 2):
        registry.register("step-time", Ewma(), evidence)
        registry.promote("step-time", version)
    registry.rollback("step-time", "it drifted", version=2)
    shown = models.view(client(empty), PageQuery({"version": "2"}))
    assert shown.selected is not None
    assert (shown.selected.state, shown.selected.note, shown.models[0].promoted) == ("demoted", "it drifted", 1)
    assert shown.history[0].reason == "it drifted"


@pytest.mark.parametrize(("slower", "words"), [(1.0, "no drift is seen"), (1.5, "it drifts")])
def test_how_later_runs_fit_the_version_that_answers_is_told_with_both_limits(
    empty: Store, monkeypatch: pytest.MonkeyPatch, slower: float, words: str
) -> None:
    shown_model = trained()
    later = later_runs(shown_model.model, slower=slower)
    monkeypatch.setattr(drifting, "TRAINERS", {"step-time": Trainer(train, lambda *_: later)})
    registry = Registry(empty)
    registry.register("step-time", shown_model.model, shown_model.evidence)
    registry.promote("step-time", 1)
    shown = models.view(client(empty), PageQuery())
    drift = drift_of(shown_model.evidence, later)
    assert shown.drift == drift
    assert f"{words}: of 60 later runs {drift.worst} (odds of drift " in shown.trust
    losses = f"the loss is {percent(drift.loss)}, in validation {percent(drift.expected_loss)}"
    assert f", limit 100), and {losses} (CUSUM " in shown.trust
    assert shown.trust in page(empty, "/models")


def test_drift_that_cannot_be_computed_now_is_not_known(empty: Store) -> None:
    registry = Registry(empty)
    registry.register("step-time", Ewma(), trained().evidence)
    registry.promote("step-time", 1)

    def busy(*_: object, **__: object) -> object:
        raise UnavailableError("another page is being computed")

    shown = models.view(Local(empty, compute=busy), PageQuery())
    assert shown.trust.endswith("; its drift is not known at the moment.")


def test_a_period_narrows_what_is_ranked(store: Store) -> None:
    now, day_ns = time.time_ns(), 86_400_000_000_000
    with store.catalog.write() as session:
        for number in range(40):
            began = now - day_ns * (1 + number // 20 * 40) - number
            ended = began + 10**10 + number % 4 * 10**8
            session.runs.merge(
                Run(f"p{number}", "bert", "lab", RunState.COMPLETED, 2, nodes=("n",), started_ns=began, ended_ns=ended)
            )
    for page in (counters, interference, regressions):
        assert page.view(client(store), PageQuery({"period": "30d"})).runs == 20
        assert page.view(client(store), PageQuery()).runs == 40
    assert (PageQuery({"period": "1d"}).since_hour_ns or 1) % 3_600_000_000_000 == 0
