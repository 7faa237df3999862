"""Trials leased beforehand: a study goes on while its server is away, and nobody gets what another took."""

import errno
import json
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.tune.test_exec import LOSS, QUIET, SPACE, Command
from tests.models.tuner.service.service_contract import ALICE, NAME, STUDY, in_threads
from tests.serving import serving

from crosswind.cli.verbs.tune.prefetch import FOLDER, Prefetch
from crosswind.cli.verbs.tune.spooled import spool_text
from crosswind.data.schema.errors import PausedError, UnavailableError
from crosswind.data.schema.trial import Study, TrialRecord, TrialState
from crosswind.models.tuner.service.folder import FolderStudyService
from crosswind.models.tuner.service.service import Lease

HERE = ("server", "http://127.0.0.1:1")


class Vanishing(FolderStudyService):
    """A service that can be away."""

    is_away = False

    def suggest(self, study: str, count: int, lease: Lease) -> list[TrialRecord]:
        """As a service, while it answers."""
        if self.is_away:
            raise UnavailableError("http://server: no answer")
        return super().suggest(study, count, lease)


@pytest.fixture
def service(tmp_path: Path) -> Vanishing:
    service = Vanishing(tmp_path / "studies")
    service.create(STUDY)
    return service


def study_of(service: FolderStudyService) -> Study:
    return service.status(NAME).study


@pytest.mark.thorough
def test_a_study_goes_on_while_its_server_is_away_and_the_server_learns_of_it(tmp_path: Path) -> None:
    shell = (*QUIET, *LOSS, "--", "bash", "-c", "echo loss={x}")
    with serving(tmp_path / "server") as (url, _):
        tune = Command(tmp_path, url)
        tune.create("away", SPACE, "--trials", "4")
        code, _, complained = tune("exec", "away", "--ahead", "2", *shell)
        assert code == 0, complained
        assert [record["trial"]["state"] for record in tune.trials("away")] == ["done", "leased", "leased"]
    code, said, complained = tune("exec", "away", "--trials", "3", *shell)
    assert (code, len(said.splitlines())) == (75, 2), complained
    assert "going on with a trial leased beforehand" in complained
    with serving(tmp_path / "server", "--port", str(urlsplit(url).port)):
        assert tune("exec", "away", *shell)[0] == 0
        trials = [record["trial"] for record in tune.trials("away")]
        assert [trial["state"] for trial in trials] == ["done"] * 4
        assert [trial["objective"] for trial in trials] == [trial["configuration"]["x"] for trial in trials]
        assert tune("exec", "away", *shell)[0] == 4


def test_nobody_gets_a_trial_that_another_took(service: Vanishing, tmp_path: Path) -> None:
    Prefetch(tmp_path / FOLDER, HERE, 20).next_trial(service, service.suggest, study_of(service), ALICE)
    waiting, got = iter([Prefetch(tmp_path / FOLDER, HERE) for _ in range(4)]), []

    def take() -> None:
        mine = next(waiting)
        while kept := mine.take(NAME):
            got.append(kept.record.trial.trial_id)

    in_threads(take, 4)
    assert sorted(got) == [record.trial.trial_id for record in service.trials(NAME)][1:]
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_kept_trials_serve_their_service_and_study_while_their_lease_holds(service: Vanishing, tmp_path: Path) -> None:
    ahead, study = Prefetch(tmp_path / FOLDER, HERE, 3), study_of(service)
    ahead.next_trial(service, service.suggest, study, ALICE)
    assert Prefetch(tmp_path / FOLDER, ("server", "http://127.0.0.1:2")).take(NAME) is None
    assert ahead.take("another") is None
    old, *_ = sorted((tmp_path / FOLDER).glob("*.json"))
    content = json.loads(old.read_text())
    content["record"]["lease_expires_ns"] = time.time_ns() - 1
    old.write_text(json.dumps(content))
    service.is_away = True
    second, third = (ahead.next_trial(service, service.suggest, study, replace(ALICE, owner="bob")) for _ in range(2))
    assert second is not None
    assert third is not None
    assert {second.owner, third.owner} == {ALICE.owner}
    assert (second.trial.state, second.trial.configuration) == (
        TrialState.LEASED,
        service.trial(NAME, second.trial.trial_id).trial.configuration,
    )
    with pytest.raises(UnavailableError):
        ahead.next_trial(service, service.suggest, study, ALICE)


def test_what_is_kept_is_used_up_before_a_study_ends(service: Vanishing, tmp_path: Path) -> None:
    service.create(replace(STUDY, study_id="short", name="short", trials_max=3))
    ahead, study = Prefetch(tmp_path / FOLDER, HERE, 2), service.status("short").study
    got = [ahead.next_trial(service, service.suggest, study, ALICE) for _ in range(4)]
    ids = {record.trial.trial_id for record in got if record is not None}
    assert (len(ids), got[-1]) == (3, None)


def left(folder: Path, seconds: float) -> None:
    """Lets the leases of what is kept run out in so many seconds."""
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text())
        content["record"]["lease_expires_ns"] = time.time_ns() + round(seconds * 1e9)
        path.write_text(json.dumps(content))


def test_what_was_kept_for_half_a_day_is_the_next_that_is_run_and_no_lease_is_lost(
    service: Vanishing, tmp_path: Path
) -> None:
    ahead, study = Prefetch(tmp_path / FOLDER, HERE, 2), study_of(service)
    ahead.next_trial(service, service.suggest, study, ALICE)
    kept = [record.trial_id for record in service.trials(NAME)][1:]
    left(tmp_path / FOLDER, 40_000)
    leased = ahead.next_trial(service, service.suggest, study, replace(ALICE, job=None))
    assert leased is not None
    assert leased.trial_id == kept[0]
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 2
    assert [record.losses for record in service.trials(NAME)] == [0] * 4


def test_what_is_old_stays_kept_while_the_service_is_away(service: Vanishing, tmp_path: Path) -> None:
    class Gone(Vanishing):
        def release(self, *_: object, **__: object) -> TrialRecord:
            raise UnavailableError("http://server: no answer")

    ahead, study = Prefetch(tmp_path / FOLDER, HERE, 1), study_of(service)
    ahead.next_trial(service, service.suggest, study, ALICE)
    left(tmp_path / FOLDER, 40_000)
    leased = ahead.next_trial(Gone(tmp_path / "studies"), service.suggest, study, ALICE)
    assert leased is not None
    assert leased.trial_id == service.trials(NAME)[1].trial_id


def test_a_trial_is_not_begun_with_a_lease_about_to_run_out(service: Vanishing, tmp_path: Path) -> None:
    ahead = Prefetch(tmp_path / FOLDER, HERE, 1)
    ahead.next_trial(service, service.suggest, study_of(service), ALICE)
    left(tmp_path / FOLDER, 20)
    assert ahead.take(NAME) is None


def test_nothing_kept_is_begun_once_the_hours_are_over_and_all_goes_back(service: Vanishing, tmp_path: Path) -> None:
    hour_ago = time.time_ns() - 3_500 * 10**9
    hourly = replace(STUDY, study_id="hourly", name="hourly", created_ns=hour_ago, hours=1.0)
    service.create(hourly)
    ahead = Prefetch(tmp_path / FOLDER, HERE, 2)
    ahead.next_trial(service, service.suggest, hourly, ALICE)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 2
    later = replace(hourly, created_ns=hour_ago - 200 * 10**9)
    for path in (tmp_path / FOLDER).glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "study": later.as_json()}))
    assert ahead.take("hourly") is None
    assert ahead.next_trial(service, lambda *_: [], later, ALICE) is None
    assert [record.trial.state for record in service.trials("hourly")][1:] == [TrialState.RELEASED] * 2


def test_nothing_kept_is_begun_of_a_study_that_is_paused_or_was_stopped(service: Vanishing, tmp_path: Path) -> None:
    ahead = Prefetch.below(tmp_path / "spool", HERE, 1)
    assert ahead.next_trial(service, service.suggest, study_of(service), ALICE)
    service.pause(NAME)
    with pytest.raises(PausedError):
        ahead.next_trial(service, service.suggest, study_of(service), ALICE)
    service.stop(NAME)
    assert ahead.next_trial(service, service.suggest, replace(study_of(service), state=STUDY.state), ALICE) is None
    assert [record.trial.state for record in service.trials(NAME)] == [TrialState.LEASED, TrialState.RELEASED]


def test_a_study_may_be_named_by_its_id(service: Vanishing, tmp_path: Path) -> None:
    ahead = Prefetch(tmp_path / FOLDER, HERE, 1)
    ahead.next_trial(service, service.suggest, study_of(service), ALICE)
    assert ahead.take(STUDY.study_id) is not None


def test_a_full_disk_gives_back_what_it_cannot_keep(
    service: Vanishing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[Path] = []

    def full(folder: Path, text: str) -> Path:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(spool_text(folder, text))
        return written[0]

    monkeypatch.setattr("crosswind.cli.verbs.tune.prefetch.spool_text", full)
    assert (
        Prefetch(tmp_path / FOLDER, HERE, 3).next_trial(service, service.suggest, study_of(service), ALICE) is not None
    )
    states = [record.trial.state for record in service.trials(NAME)]
    assert states == [TrialState.LEASED] * 2 + [TrialState.RELEASED] * 2
    assert "No space left on device" in capsys.readouterr().err


def test_a_file_that_is_half_there_is_left_alone(service: Vanishing, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "half.json").write_text('{"place": ["server", "htt')
    (folder / "strange.json").write_text('{"place": ["server", "http://127.0.0.1:1"], "study": {}, "record": {}}')
    assert Prefetch(folder, HERE).take(NAME) is None
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_written_keeps_nothing_and_hands_out_the_trial(
    service: Vanishing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FOLDER).write_text("a file, not a folder")
    assert (
        Prefetch(tmp_path / FOLDER, HERE, 2).next_trial(service, service.suggest, study_of(service), ALICE) is not None
    )
    assert "nothing more is kept for later" in capsys.readouterr().err
