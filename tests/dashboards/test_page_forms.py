"""Forms of the pages that change something: who sees them, what they do, and where they lead."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.dashboards.test_studies_page import STUDY, search
from tests.models.registry.models import poor, trained
from tests.serving import own_client, patient_app

from crosswind.client.local import Local
from crosswind.dashboards.pages.listed import LISTED
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.render import Address, render
from crosswind.data.schema.trial import StudyState, TrialState
from crosswind.data.store.store import Store
from crosswind.models.baseline import Ewma
from crosswind.models.registry.registry import Registry

HTML = {"Accept": "text/html"}


@pytest.fixture
def browser(store: Store) -> Iterator[TestClient]:
    """The store's owner at a browser, who follows no redirect."""
    with own_client(patient_app(store), base_url="http://127.0.0.1") as client:
        client.follow_redirects = False
        yield client


def test_a_configuration_is_enqueued_and_a_budget_extended(store: Store, browser: TestClient) -> None:
    service = search(store, STUDY, [0.4])
    assert 'value="enqueue"' in browser.get("/studies", headers=HTML).text
    answer = browser.post("/studies", data={"study": "ddp", "act": "enqueue", "config": "batch=64"})
    assert (answer.status_code, answer.headers["location"]) == (303, "studies?study=ddp")
    waiting = service.trials("ddp")[-1].trial
    assert (waiting.state, waiting.configuration) == (TrialState.WAITING, {"batch": 64})
    browser.post("/studies", data={"study": "ddp", "act": "extend", "trials": "3"})
    assert service.status("ddp").study.trials_max == 7


def test_a_study_is_paused_goes_on_and_is_stopped_once_that_is_confirmed(store: Store, browser: TestClient) -> None:
    service = search(store, STUDY, [0.4])
    assert 'name="act" value="pause"' in browser.get("/studies", headers=HTML).text

    def act(**fields: str) -> int:
        return browser.post("/studies", data={"study": "ddp", **fields}, headers=HTML).status_code

    assert (act(act="pause"), service.status("ddp").study.state) == (303, StudyState.PAUSED)
    assert 'name="act" value="resume"' in browser.get("/studies", headers=HTML).text
    assert (act(act="resume"), service.status("ddp").study.state) == (303, StudyState.RUNNING)
    assert (act(act="stop"), service.status("ddp").study.state) == (422, StudyState.RUNNING)
    assert (act(act="stop", sure="yes"), service.status("ddp").study.state) == (303, StudyState.STOPPED)
    html = browser.get("/studies", headers=HTML).text
    assert 'value="stop"' not in html
    assert 'value="enqueue"' not in html
    assert act(act="pause") == 409
    assert (act(act="resume"), service.status("ddp").study.state) == (303, StudyState.RUNNING)


def test_a_wrong_configuration_is_a_page_with_the_reason(store: Store, browser: TestClient) -> None:
    search(store, STUDY, [0.4])
    for config in ("batch=7", "batch", "other=8"):
        answer = browser.post("/studies", data={"study": "ddp", "config": config}, headers=HTML)
        assert answer.status_code == 422
        assert "expected" in answer.text
    assert browser.post("/studies", data={"study": "nope", "config": "batch=8"}, headers=HTML).status_code == 404


def test_a_version_is_promoted_for_a_reason_and_taken_back(store: Store, browser: TestClient) -> None:
    registry, evidence = Registry(store), trained().evidence
    for one in (evidence, poor(evidence)):
        registry.register("step-time", Ewma(), one)
    registry.promote("step-time", 1)
    act = {"model": "step-time", "version": "2"}
    assert browser.post("/models", data={**act, "act": "promote"}, headers=HTML).status_code == 409
    assert browser.post("/models", data={**act, "act": "promote", "reason": "a trial"}).status_code == 303
    assert 'value="rollback"' in browser.get("/models", headers=HTML).text
    answer = browser.post("/models", data={**act, "act": "rollback", "reason": "it lost"})
    assert (answer.status_code, answer.headers["location"]) == (303, "models?model=step-time")
    promoted = registry.promoted("step-time")
    assert promoted is not None
    assert promoted.version == 1


def test_a_form_of_another_site_changes_nothing(store: Store, browser: TestClient) -> None:
    service = search(store, STUDY, [0.4])
    answer = browser.post(
        "/studies", data={"study": "ddp", "config": "batch=64"}, headers={"Origin": "http://evil.example"}
    )
    assert answer.status_code == 403
    assert len(service.trials("ddp")) == 1


def test_who_may_not_act_sees_no_form(store: Store) -> None:
    search(store, STUDY, [0.4])
    [page] = [page for page in LISTED if page.name == "studies"]
    html = render(page, page.view(Local(store), PageQuery()), Address("./", "/studies"))
    assert 'method="post"' not in html
