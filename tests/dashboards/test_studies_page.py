"""Contents of the Studies page, of searches whose trials are known."""

import math
from dataclasses import replace

import pytest
from tests.dashboards.conftest import MS
from tests.serving import own_client, patient_app

from crosswind.api.answer_cache import AnswerCache
from crosswind.client.local import Local
from crosswind.dashboards.figures.parameters import ImportancePlot
from crosswind.dashboards.figures.search.charts import StudyCharts
from crosswind.dashboards.figures.search.front import Front
from crosswind.dashboards.figures.search.timeline import STALE, timeline
from crosswind.dashboards.figures.trials import TrialValues
from crosswind.dashboards.figures.weights import SourceWeights, source_weights
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.tuning import studies
from crosswind.dashboards.pages.tuning.insight import done_words
from crosswind.dashboards.wording import NONE, iso, utc
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import ALPHABET, Run, RunState, begun_ns
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.search.enough import Prospect
from crosswind.models.tuner.service.catalog import CatalogStudyService
from crosswind.models.tuner.service.service import Lease

SPACE = {"batch": {"kind": "ordinal", "values": [8, 16, 32, 64]}}
WIDE = {"batch": {"kind": "int", "low": 1, "high": 64}}
STUDY = Study("s1", "ddp", SPACE, "step_p50_seconds", "s", 0, 1_700_000_000_000_000_000, trials_max=4)
HOSTILE = "<script>alert(1)</script>"


def shown(store: Store, **query: str) -> studies.StudiesView:
    return studies.view(Local(store), PageQuery(query))


def search(store: Store, study: Study, values: list[float | None]) -> CatalogStudyService:
    service = CatalogStudyService(store.catalog)
    service.create(study)
    for value in values:
        [record] = service.suggest(study.name, 1, Lease("job 7", 60.0))
        trial_id = record.trial.trial_id
        if value is None:
            service.fail(study.name, trial_id, f"out of memory {HOSTILE}", state=TrialState.INFEASIBLE, owner="job 7")
        else:
            service.complete(study.name, trial_id, value, owner="job 7", run_id="r7")
    return service


def test_a_study_is_described_by_its_best_trial_and_how_far_it_is(store: Store) -> None:
    service = search(store, STUDY, [0.4, None, 0.2])
    [running] = service.suggest("ddp", 1, Lease("job 8", 60.0))
    view = shown(store)
    best = view.rows[1]
    assert (
        view.sentence == f"ddp: batch={best.configuration['batch']} is the best so far, 200 ms (after 4 of 4 trials)."
    )
    assert (view.trials, view.ended, view.running, view.budget) == (4, 3, 1, 4)
    assert [row.number for row in view.rows] == [4, 3, 2, 1]
    assert [row.value for row in view.rows] == [None, 0.2, None, 0.4]
    assert (best.is_best, best.run_id, view.rows[0].owner) == (True, "r7", "job 8")
    service.complete("ddp", running.trial.trial_id, 0.3, owner="job 8")
    assert shown(store).sentence.endswith("(after 4 of 4 trials, the budget is spent).")


def test_the_figure_tells_what_was_gained(store: Store) -> None:
    search(store, STUDY, [0.4, None, 0.2])
    chart = shown(store).charts[0]
    assert isinstance(chart, TrialValues)
    assert chart.title == "Trial 3 is the best: 200 ms, 2.00x better than the first"
    assert chart.sentence == (
        "step_p50_seconds of 2 complete trials, smaller is better; 1 trial ended without a value."
    )
    assert chart.table.rows[-1] == ("3", "200 ms", "200 ms")
    assert (chart.best_so_far, chart.unmeasured) == ([0.4, 0.2], (2,))


def test_no_tick_stands_between_two_trials(store: Store) -> None:
    search(store, STUDY, [0.4, None, 0.2])
    chart = shown(store).charts[0]
    assert isinstance(chart, TrialValues)
    assert chart.draw().as_plotly().layout.xaxis.dtick == 1
    assert (
        replace(chart, unmeasured=(2, 1000)).draw().as_plotly().layout.xaxis.dtick is None
    )  # plotly's choice: one a trial is a blur


def test_what_is_to_be_large_is_shown_as_its_user_knows_it(store: Store) -> None:
    study = replace(STUDY, name="fast", objective="samples_per_second", unit="", direction="maximise")
    search(store, study, [-100.0, -300.0, -200.0])
    view = shown(store)
    chart = view.charts[0]
    assert isinstance(chart, TrialValues)
    assert [row.value for row in view.rows] == [200.0, 300.0, 100.0]
    assert chart.title == "Trial 2 is the best: 300, 3.00x better than the first"
    assert "larger is better" in chart.sentence


def test_of_several_studies_the_newest_is_shown_unless_one_is_asked_for(store: Store) -> None:
    assert shown(store).selected is None
    search(store, STUDY, [])
    search(store, replace(STUDY, study_id="s2", name="newer", created_ns=STUDY.created_ns + 1), [0.5])
    assert shown(store).selected == "newer"
    view = shown(store, study="ddp")
    assert (view.selected, view.studies, view.charts) == ("ddp", ("ddp", "newer"), ())
    assert view.sentence == "ddp: nothing is measured yet, no trial is begun yet."
    with pytest.raises(NotFoundError, match="study 'none' is not in the catalog"):
        shown(store, study="none")


def test_what_follows_from_the_trials_is_computed_once_a_trial_however_much_else_is_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []
    importances = StudyCharts.importances
    monkeypatch.setattr(StudyCharts, "importances", lambda self: (computed.append(1), importances(self))[1])
    service = search(store, replace(STUDY, space=WIDE, trials_max=None), [0.4, 0.2, 0.3, 0.5] * 4)
    [held] = service.suggest("ddp", 1, Lease("job 8", 60.0))
    client = Local(store, compute=AnswerCache())
    first = studies.view(client, PageQuery({}))
    with store.catalog.write() as session:
        session.runs.merge(Run("later", "toy", "lab", RunState.COMPLETED, started_ns=1, ended_ns=2))
    service.release("ddp", held.trial_id, owner="job 8")
    service.suggest("ddp", 1, Lease("job 9", 60.0))
    second = studies.view(client, PageQuery({}))
    assert [one.rows[0].owner for one in (first, second)] == ["job 8", "job 9"]
    assert (len(computed), second.charts[:-1]) == (1, first.charts[:-1])
    service.complete("ddp", held.trial_id, 0.1, owner="job 9")
    assert "100 ms (after 17 trials)" in studies.view(client, PageQuery({})).sentence
    assert len(computed) == 2


def test_of_many_trials_the_newest_are_listed_under_their_numbers(store: Store) -> None:
    search(store, replace(STUDY, trials_max=None), [0.4, 0.1, *[0.3] * 2])
    view = shown(store, limit="2")
    assert ([row.number for row in view.rows], view.trials) == ([4, 3], 4)
    assert "100 ms" in view.sentence
    with store.catalog.read() as session:
        counts, newest = session.leases.states("s1"), session.leases.newest("s1", 2)
        assert newest == session.leases.records("s1")[-2:]
    assert counts == {state: 4 * (state is TrialState.DONE) for state in TrialState}


def test_what_jobs_tell_stays_text(store: Store) -> None:
    search(store, replace(STUDY, name=HOSTILE), [0.4, None])
    with own_client(patient_app(store), base_url="http://localhost") as client:
        page = client.get("/studies", headers={"Accept": "text/html"})
        twin = client.get("/studies.json").json()
        missing = client.get("/studies?study=none", headers={"Accept": "text/html"})
    assert (page.status_code, missing.status_code) == (200, 404)
    assert HOSTILE not in page.text
    assert "&lt;script&gt;" in page.text
    assert twin["selected"] == HOSTILE


def test_sources_are_shown_with_their_reasons_and_weights_over_time(store: Store) -> None:
    search(store, replace(STUDY, workload="gpt"), [0.4, 0.2, 0.3, 0.5])
    search(store, replace(STUDY, study_id="s0", name=f"other {HOSTILE}", workload="cnn"), [])
    newer = replace(STUDY, study_id="s2", name="newer", workload="gpt", created_ns=STUDY.created_ns + 1)
    client = Local(store)
    client.studies.create(newer)
    before = shown(store)
    assert ([source.name for source in before.sources.used], before.charts) == (["study ddp"], ())
    for value in (0.2, 0.3, 0.4, 0.5):
        [record] = client.studies.suggest("newer", 1, Lease("job 7", 60.0))
        client.studies.complete("newer", record.trial_id, value)
    view = shown(store)
    [source] = view.sources.used
    assert source.why == "same workload, 1 of 1 parameters, 4 configurations"
    assert [(one.name, one.reason) for one in view.sources.left_out] == [
        (f"study other {HOSTILE}", "another workload: cnn")
    ]
    _, chart, _ = view.charts
    assert isinstance(chart, SourceWeights)
    assert (chart.names, [number for number, _ in chart.weights]) == (("study ddp", "own"), [1, 2, 3, 4])
    assert chart.weights[0][1] == {"study ddp": 1.0, "own": 0.0}
    newest = chart.weights[-1][1]
    assert (source.weight, view.sources.own_weight) == (newest["study ddp"], newest["own"])
    assert chart.table.headers == ("trial", "study ddp", "the study's own trials")
    assert chart.table.rows[0] == ("1", "100 %", "0 %")
    with own_client(patient_app(store), base_url="http://localhost") as browser:
        page = browser.get("/studies", headers={"Accept": "text/html"}).text
        twin = browser.get("/studies.json").json()
    assert "figure-weights" in page
    assert "same workload, 1 of 1 parameters, 4 configurations" in page
    assert HOSTILE not in page
    assert twin["sources"]["used"][0]["name"] == "study ddp"


def test_a_study_that_wants_no_sources_says_so(store: Store) -> None:
    search(store, replace(STUDY, sources=()), [0.4])
    assert shown(store).wants_no_sources
    with own_client(patient_app(store), base_url="http://localhost") as browser:
        assert "None, as the study says" in browser.get("/studies", headers={"Accept": "text/html"}).text


def test_the_figure_of_weights_says_what_counts_most() -> None:
    record = TrialRecord(Trial({"batch": 8}), "s1")
    weights = [{"a": 0.6, "b": 0.4, "own": 0.0}, {"b": 0.7, "own": 0.3}]
    chart = source_weights([record, *(replace(record, weights=own) for own in weights)])
    assert chart is not None
    assert chart.title == "b counts most: 70 %, the study's own trials 30 %"
    assert list(chart.table.rows) == [("2", "40 %", "60 %", "0 %"), ("3", "70 %", NONE, "30 %")]
    own = source_weights([replace(record, weights={"a": 0.2, "own": 0.8})])
    assert own is not None
    assert own.title == "The study's own trials count most: 80 %"
    assert source_weights([record]) is None


def test_a_study_says_what_more_trials_would_gain_and_which_parameter_matters(store: Store) -> None:
    space = {"batch": {"kind": "int", "low": 1, "high": 64}, "idle": {"kind": "int", "low": 1, "high": 64}}
    service = CatalogStudyService(store.catalog)
    service.create(replace(STUDY, space=space, trials_max=None, search="random"))
    for number in range(20):
        [record] = service.suggest("ddp", 1, Lease("job 7", 60.0))
        batch = float(record.trial.configuration["batch"])
        service.complete("ddp", record.trial_id, 1.0 + abs(batch - 40) / 10, owner="job 7", run_id=f"r{number}")
    view = shown(store)
    assert view.done.startswith(("Go on: the next trial is expected to gain", "Done: the next trial is expected"))
    importance = next(chart for chart in view.charts if isinstance(chart, ImportancePlot))
    assert importance.shares[0][0] == "batch"
    assert [chart.name for chart in view.charts] == ["trials", "importance", "slices", "parallel", "timeline"]
    for chart in view.charts[2:4]:
        assert ["r3"] in [one for trace in chart.draw().as_plotly().data for one in trace.customdata]


def test_too_few_trials_and_a_spent_budget_are_said(store: Store) -> None:
    service = search(store, STUDY, [0.4])
    assert shown(store).done == "Go on: 1 trial measured, and 12 configurations are needed to judge what is left."
    for value in (0.3, 0.2, 0.1):
        [record] = service.suggest("ddp", 1, Lease("job 7", 60.0))
        service.complete("ddp", record.trial_id, value, owner="job 7")
    assert shown(store).done == "Done: the budget is spent."
    words = done_words(service.status("ddp").study, service.status("ddp"), Prospect(0.01, 0.02))
    assert words == (
        "Done: the budget is spent. Another trial would be expected to gain 1 %, less than the noise of 2 %."
    )


def test_two_objectives_have_a_front(store: Store) -> None:
    service = CatalogStudyService(store.catalog)
    service.create(replace(STUDY, objectives=("minimise step_p50_seconds", "maximise samples")))
    for seconds, samples in ((0.4, 9.0), (0.2, 3.0), (0.5, 4.0)):
        [record] = service.suggest("ddp", 1, Lease("job 7", 60.0))
        service.complete("ddp", record.trial_id, seconds, owner="job 7", outcomes={"samples": samples})
    view = shown(store)
    assert view.sentence.startswith(
        "ddp: 2 trials are beaten by no other in 2 objectives; the best in step_p50_seconds is"
    )
    front = view.charts[0]
    assert isinstance(front, Front)
    assert [(one.first, one.second) for one in front.front] == [(0.2, 3.0), (0.4, 9.0)]
    assert front.title == "2 trials trade step_p50_seconds for samples"


def test_a_lease_that_ran_out_is_said_and_a_stored_run_ends_its_trial() -> None:
    began = 1_700_000_000_000
    trial_id = "".join(ALPHABET[began >> shift & 31] for shift in range(45, -1, -5)) + "0" * 16
    held = TrialRecord(Trial({}, TrialState.LEASED, trial_id=trial_id), "s1", lease_expires_ns=5, run_id="r1")
    run = Run("r1", "w", "s", RunState.COMPLETED, 1, {}, started_ns=began * MS, ended_ns=(began + 2000) * MS)
    chart = timeline([held, replace(held, lease_expires_ns=20)], {"r1": run}, now_ns=10)
    assert chart is not None
    assert chart.title == "1 trial is being measured, 1 lease ran out"
    assert [(one.began_ns, one.seconds, one.state) for one in chart.trials] == [
        (began * MS, 2.0, STALE),
        (began * MS, 2.0, TrialState.LEASED),
    ]
    assert timeline([replace(held, trial=replace(held.trial, trial_id="imported"))], {}, now_ns=10) is None


def test_a_trial_beyond_a_limit_is_the_best_in_no_figure(store: Store) -> None:
    service = CatalogStudyService(store.catalog)
    service.create(replace(STUDY, trials_max=9, limits=("memory_bytes <= 8",)))
    for number in range(4):
        [record] = service.suggest("ddp", 1, Lease("job 7", 60.0))
        memory = 9.0 if number == 0 else 1.0
        service.complete("ddp", record.trial_id, 1.0 + number, owner="job 7", outcomes={"memory_bytes": memory})
    view = shown(store)
    values = next(chart for chart in view.charts if isinstance(chart, TrialValues))
    assert view.sentence.startswith(f"ddp: batch={view.rows[-2].configuration['batch']} is the best so far, 2.00 s")
    assert values.title == "No trial is better than the first: 2.00 s"
    assert values.best_so_far == [math.inf, 2.0, 2.0, 2.0]
    assert values.sentence.endswith("smaller is better; 1 beyond a limit.")
    assert [trace.name for trace in values.draw().as_plotly().data] == ["best so far", "complete", "beyond a limit"]
    measured = StudyCharts(service.status("ddp").study, service.trials("ddp")).slices(())
    assert measured.title == f"The best, 2.00 s, has batch = {view.rows[-2].configuration['batch']}"
    assert measured.sentence.endswith("; the 1 beyond a limit are hollow.")
    assert "circle-open" in measured.draw().as_plotly().data[0].marker.symbol


def test_a_lease_is_drawn_from_now_on_and_not_for_a_day(store: Store) -> None:
    service = search(store, STUDY, [0.4])
    [held] = service.suggest("ddp", 1, Lease("job 8", 86_400.0))
    records = service.trials("ddp")
    first, now_ns = begun_ns(records[0].trial_id), (begun_ns(held.trial_id) or 0) + 8_000_000_000
    assert first
    drawn = timeline(records, {}, now_ns)
    assert drawn
    lease = next(trace for trace in drawn.draw().as_plotly().data if trace.name == "lease holds")
    assert list(lease.x)[:2] == [iso(now_ns), iso(now_ns + (now_ns - first) // 4)]
    running = next(trace for trace in drawn.draw().as_plotly().data if trace.name == "leased")
    assert running.hovertext[0] == f"trial 2: leased, lease until {utc(held.lease_expires_ns)}"


def test_a_page_says_that_its_study_is_paused_or_was_stopped(store: Store) -> None:
    service = search(store, STUDY, [0.4, 0.2])
    service.pause("ddp")
    view = shown(store)
    assert (view.state, view.done.startswith("Paused: no trial is handed out now. Go on: ")) == ("paused", True)
    service.stop("ddp")
    view = shown(store)
    assert (view.state, view.done) == ("stopped", "Stopped: no more trials are handed out.")
    assert view.sentence.endswith("(after 2 of 4 trials).")
    prospect = Prospect(0.03, 0.02)
    words = done_words(service.status("ddp").study, service.status("ddp"), prospect)
    assert words.endswith("Another trial would be expected to gain 3 %, more than the noise of 2 %.")
