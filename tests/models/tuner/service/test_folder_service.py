import os
import resource
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.tuner.service.growth_contract import GrowthContract
from tests.models.tuner.service.life_contract import LifeContract
from tests.models.tuner.service.reports_contract import ReportsContract
from tests.models.tuner.service.service_contract import ALICE, BOB, NAME, SECOND, STUDY, StudyServiceContract
from tests.models.tuner.service.state_contract import StateContract

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.report import Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import TrialState
from crosswind.models.tuner.service.folder import FileSystemClock, FolderStudyService
from crosswind.models.tuner.service.folder.study_folder import StudyFolder
from crosswind.models.tuner.service.service import Lease, Limits

DAY_SECONDS = 24 * 3600


class Clock:
    """The file system's clock, set by the test."""

    ns = 1_700_000_000 * SECOND

    def now_ns(self, folder: Path) -> int:
        return self.ns

    def stamp(self, path: Path) -> None:
        os.utime(path, ns=(self.ns, self.ns))

    def pass_seconds(self, seconds: float) -> None:
        self.ns += round(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> FolderStudyService:
    service = FolderStudyService(tmp_path, clock=clock)
    service.create(STUDY)
    return service


class TestFolderStudyService(StudyServiceContract, ReportsContract, GrowthContract, LifeContract, StateContract):
    """The promises of every service, in a folder."""


def trial_files(root: Path) -> list[Path]:
    return sorted(root.glob("*/0*.json"))


def test_another_process_sees_the_same_study(service: FolderStudyService, tmp_path: Path, clock: Clock) -> None:
    [first] = service.suggest(NAME, 1, ALICE)
    other = FolderStudyService(tmp_path, clock=clock)
    done = other.complete("s1", first.trial.trial_id, 1.5)
    assert service.trials(NAME) == other.trials(NAME) == [done]
    [second] = other.suggest(NAME, 1, BOB)
    assert service.trial(NAME, second.trial.trial_id) == second


def test_a_half_written_file_is_as_if_it_had_never_been_begun(
    service: FolderStudyService, tmp_path: Path, clock: Clock
) -> None:
    [record] = service.suggest(NAME, 1, ALICE)
    service.complete(NAME, record.trial.trial_id, 1.0)
    [begun, ended] = trial_files(tmp_path)
    for content in (ended.read_bytes()[:-20], b"", b"\0" * 300, b"[1]\n", b"{}\n", b"[" * 100_000 + b"\n"):
        ended.write_bytes(content)
        begun.touch()
        os.utime(begun, ns=(clock.ns, clock.ns))
        fresh = FolderStudyService(tmp_path, clock=clock)
        assert fresh.trials(NAME) == [record]
    again = FolderStudyService(tmp_path, clock=clock).complete(NAME, record.trial.trial_id, 2.0)
    assert (again.trial.objective, len(trial_files(tmp_path))) == (2.0, 3)


def test_a_study_that_is_none_is_named(service: FolderStudyService, tmp_path: Path) -> None:
    [path] = tmp_path.glob("*/study.json")
    path.write_text('{"study": {"name": 1}}\n')
    with pytest.raises(MalformedError, match=r"study\.json: expected a study"):
        FolderStudyService(tmp_path).suggest(NAME, 1, ALICE)


def test_a_study_that_is_none_keeps_no_other_from_being_renamed_or_found(
    service: FolderStudyService, tmp_path: Path
) -> None:
    (tmp_path / "a-broken-one").mkdir()
    (tmp_path / "a-broken-one" / "study.json").write_text("{")
    assert service.rename(NAME, "other").name == "other"
    assert FolderStudyService(tmp_path).status("s1").study.name == "other"


def test_a_rename_by_another_process_meanwhile_stops_nobody(
    service: FolderStudyService, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    [record] = service.suggest(NAME, 1, ALICE)
    service.create(replace(STUDY, study_id="s2", name="n", trials_max=5))
    assert service.trials("n") == []
    names = iter("abcd")
    look, is_at_once = StudyFolder._newest_change, False

    def renamed_just_before(folder: StudyFolder) -> int:
        nonlocal is_at_once
        if is_at_once:
            is_at_once = False
            other = FolderStudyService(tmp_path, clock=clock)
            other.rename(study_id, next(names), force=True)
        return look(folder)

    monkeypatch.setattr(StudyFolder, "_newest_change", renamed_just_before)
    study_id, is_at_once = "s1", True
    assert service.report(NAME, record.trial_id, [Report(1, 0.5)], owner="alice") == ""
    study_id, is_at_once = "s2", True
    assert service.extend("n", trials=2).trials_max == 7
    is_at_once = True
    [queued] = service.enqueue("n", [record.trial.configuration])
    assert [trial.trial_id for trial in service.trials("s2")] == [queued.trial_id]
    assert (service.reports("s1"), is_at_once) == ({record.trial_id: [Report(1, 0.5)]}, False)


def test_names_that_look_alike_are_other_studies_and_none_leaves_the_folder(tmp_path: Path) -> None:
    service = FolderStudyService(tmp_path / "root")
    names = ["a b", "a-b", "../a b", "/", ".", "x" * 200, "ü"]
    for number, name in enumerate(names):
        service.create(replace(STUDY, study_id=f"s{number}", name=name))
    assert [service.status(name).study.study_id for name in names] == [f"s{number}" for number in range(len(names))]
    assert len(list((tmp_path / "root").iterdir())) == len(names)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_drafts_of_killed_writers_are_ignored_and_cleared_after_a_day(
    service: FolderStudyService, tmp_path: Path, clock: Clock
) -> None:
    [study] = tmp_path.iterdir()
    draft = study / ".01KAXX.draft"
    draft.write_bytes(b'{"number"')
    clock.stamp(draft)
    [record] = service.suggest(NAME, 1, ALICE)
    assert (service.trials(NAME), draft.exists()) == ([record], True)
    clock.pass_seconds(DAY_SECONDS + 1)
    service.suggest(NAME, 1, ALICE)
    assert [path.name for path in study.iterdir() if path.name.startswith(".")] == []


def test_the_file_systems_clock_counts_and_not_the_nodes(tmp_path: Path) -> None:
    service = FolderStudyService(tmp_path)
    service.create(STUDY)
    [record] = service.suggest(NAME, 1, Lease("alice", 100))
    [turn] = trial_files(tmp_path)
    assert record.lease_expires_ns == turn.stat().st_mtime_ns + 100 * SECOND
    long_ago = turn.stat().st_mtime_ns - 101 * SECOND
    os.utime(turn, ns=(long_ago, long_ago))
    slack = FolderStudyService(tmp_path, clock=FileSystemClock(slack_seconds=300))
    [new] = slack.suggest(NAME, 1, BOB)
    assert new.trial.trial_id != record.trial.trial_id
    renewed = service.heartbeat(NAME, record.trial.trial_id, Lease("alice", 100))
    assert abs((renewed.lease_expires_ns or 0) - 100 * SECOND - time.time_ns()) < 60 * SECOND
    os.utime(turn, ns=(long_ago, long_ago))
    [again] = service.suggest(NAME, 1, BOB)
    assert again.trial == record.trial


def test_the_trial_of_a_job_that_died_goes_to_the_next_at_once(tmp_path: Path, clock: Clock) -> None:
    dead: set[str] = set()

    def ended(jobs: Collection[str]) -> Collection[str]:
        return dead & set(jobs)

    service = FolderStudyService(tmp_path, clock=clock, dead_jobs=ended)
    service.create(STUDY)
    [lost] = service.suggest(NAME, 1, Lease("n1", 60, "7_1"))
    [held] = service.suggest(NAME, 1, Lease("n2", 60, "7_2"))
    dead.add("7_1")
    [again, new] = service.suggest(NAME, 2, BOB)
    assert again.trial == lost.trial
    assert new.trial.trial_id not in {lost.trial.trial_id, held.trial.trial_id}


def test_a_trial_given_back_while_others_are_begun_is_not_begun_a_second_time(tmp_path: Path, clock: Clock) -> None:
    other, study = FolderStudyService(tmp_path, clock=clock), replace(STUDY, space={"fused": {"kind": "boolean"}})
    other.create(study)
    [given_back] = other.suggest(NAME, 1, Lease("n1", 60, "7"))

    def ended(jobs: Collection[str]) -> Collection[str]:  # called after the trials were read
        if "7" in jobs:
            other.release(NAME, given_back.trial.trial_id)
        return ()

    service = FolderStudyService(tmp_path, clock=clock, dead_jobs=ended)
    records = service.suggest(NAME, 2, BOB)
    assert sorted(bool(record.trial.configuration["fused"]) for record in records) == [False, True]
    assert given_back.trial.trial_id in {record.trial.trial_id for record in records}


def test_a_request_key_of_another_request_is_refused(service: FolderStudyService) -> None:
    service.suggest(NAME, 2, ALICE, request=RequestKey("k1", "suggest 2"))
    with pytest.raises(InvalidInputError, match="another request"):
        service.suggest(NAME, 2, ALICE, request=RequestKey("k1", "suggest 3"))


def test_a_full_study_takes_no_more_trials(service: FolderStudyService, tmp_path: Path, clock: Clock) -> None:
    service.suggest(NAME, 2, ALICE)
    with pytest.raises(InvalidInputError, match="has 2 trials, expected at most 2"):
        FolderStudyService(tmp_path, clock=clock, limits=Limits(trials=2)).suggest(NAME, 1, BOB)


def test_a_root_that_cannot_be_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="file"):
        FolderStudyService(tmp_path / "file").create(STUDY)


def test_a_study_starts_from_the_best_of_another_in_the_folder(
    service: FolderStudyService, clock: Clock, tmp_path: Path
) -> None:
    records = service.suggest(NAME, 4, ALICE)
    for objective, record in enumerate(records, 1):
        service.complete(NAME, record.trial.trial_id, objective)
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "study.json").write_text("no JSON")
    service.create(replace(STUDY, study_id="s2", name="second"))
    [first] = FolderStudyService(tmp_path, clock=clock).suggest("second", 1, BOB)
    assert first.trial.configuration == records[0].trial.configuration


def test_no_database_is_loaded_for_a_folder(service: FolderStudyService, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from crosswind.models.tuner.service.service import Lease
from crosswind.models.tuner.service.folder import FolderStudyService
FolderStudyService(Path(sys.argv[1])).suggest("s1", 1, Lease("bob", 60))
print([name for name in ("sqlalchemy", "duckdb") if name in sys.modules])
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == ["[]"]


ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from crosswind.data.schema.errors import UnavailableError
from crosswind.models.tuner.service.service import Lease
from crosswind.models.tuner.service.folder import FolderStudyService
service, trial = FolderStudyService(Path(sys.argv[1])), sys.argv[2]
resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))  # every file that grows beyond 40 bytes is refused
for report in (lambda: service.complete("s1", trial, 1.0), lambda: service.suggest("s1", 1, Lease("bob", 60))):
    try:
        report()
    except UnavailableError as error:
        print(error)
service.heartbeat("s1", trial, Lease("alice", 60))
print(len(service.trials("s1")), service.trial("s1", trial).trial.state)
"""


def test_a_full_disk_is_reported_and_loses_nothing(service: FolderStudyService, tmp_path: Path) -> None:
    [record] = service.suggest(NAME, 1, Lease("alice", 60))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path), record.trial.trial_id]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.endswith(".json: File too large") for line in lines] == [True, True, False]
    assert lines[2] == "1 leased"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files
    assert service.complete(NAME, record.trial.trial_id, 1.0).trial.state is TrialState.DONE
