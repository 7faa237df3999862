"""Records of trials' runs go where the study is, and are judged there."""

from pathlib import Path

import pytest
from tests.ingest.ship.test_shipper import fill
from tests.serving import answering

from crosswind.cli.verbs.tune.execution.records import records_of, shipped
from crosswind.client.remote import Remote
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import cohort_key
from crosswind.data.schema.trial import Study
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.disturbed import disturbance_of
from crosswind.models.tuner.service.service import Lease
from crosswind.settings import Settings

SPACE = {"lr": {"kind": "int", "low": 1, "high": 100}}
STUDY = Study("", "ddp", SPACE, "loss", "", 0, 1)


@pytest.mark.thorough
def test_a_server_judges_measured_runs_as_the_store_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path / "home") as store:
        load_lab_samples(store)
        runs = {run.run_id: run for run in all_runs(store) if run.tags.get("split") in {"train", "calibrate"}}
        with store.catalog.read() as session:
            injected = session.injections.of_runs(list(runs))
        hogged = next(
            injection.run_id for injection in injected if injection.kind == "cpu_hog" and injection.strength >= 2
        )
        quiet = sorted(runs.keys() - {injection.run_id for injection in injected})
        alike = [candidate for candidate in quiet if cohort_key(runs[candidate]) == cohort_key(runs[hogged])]
        expected = {
            judged: disturbance_of(store, judged, others=alike, parameters=SPACE) for judged in (hogged, alike[0])
        }
    with answering(tmp_path / "home") as url:
        client = Remote(url)
        service = client.studies
        service.create(STUDY)
        for run_id in alike:
            [leased] = service.suggest("ddp", 1, Lease("alice", 60))
            service.complete("ddp", leased.trial_id, 1.0, run_id=run_id)
        disturbances = {judged: client.disturbance("ddp", judged) for judged in expected}
        with pytest.raises(NotFoundError, match="run 'nobody' is not in the catalog"):
            client.disturbance("ddp", "nobody")
        with pytest.raises(NotFoundError, match="study 'another'"):
            client.disturbance("another", hogged)
        settings = Settings.from_environment({"CROSSWIND_HOME": str(tmp_path / "client")})
        assert records_of(("server", url), settings, service, STUDY).judge("nobody") is None
    assert disturbances == expected
    assert [disturbance.is_disturbed for disturbance in disturbances.values()] == [True, False]
    assert "nothing tells whether run nobody was disturbed" in capsys.readouterr().err


def test_a_spool_stays_where_it_is_while_the_server_is_away(tmp_path: Path) -> None:
    fill(tmp_path, "n1", segments=2)
    kept = sorted(tmp_path.glob("*.segment"))
    assert shipped(tmp_path, "http://127.0.0.1:9").startswith(f"kept in {tmp_path}: ")
    assert sorted(tmp_path.glob("*.segment")) == kept != []


def test_what_a_server_takes_leaves_the_spool_and_what_is_no_segment_is_told(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", segments=2)
    (tmp_path / "spool" / "notes.segment").write_bytes(b"")
    with answering(tmp_path / "home") as url:
        message = shipped(tmp_path / "spool", url)
    assert message == f"2 segments of {tmp_path / 'spool'} shipped to {url}, 1 refused and kept aside"
    assert list((tmp_path / "spool").glob("*.segment")) == []
