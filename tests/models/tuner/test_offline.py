import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.models.tuner.desks_contract import ALICE, BOB, NAME, STUDY, in_threads

from crosswind.data.errors import UnavailableError
from crosswind.data.trial import TrialRecord, TrialState
from crosswind.models.tuner.offline import Spool, Tell
from crosswind.models.tuner.shared_folder import FolderDesk


class Vanishing(FolderDesk):
    """A desk that answers so many tells and no more."""

    answers = 0

    def complete(
        self,
        study: str,
        trial_id: str,
        objective: float,
        *,
        owner: str | None = None,
        run_id: str | None = None,
        outcomes: Mapping[str, float] | None = None,
    ) -> TrialRecord:
        """As a desk, as long as it answers."""
        if self.answers == 0:
            raise UnavailableError("http://server: no answer")
        self.answers -= 1
        return super().complete(study, trial_id, objective, owner=owner, run_id=run_id, outcomes=outcomes)


@pytest.fixture
def desk(tmp_path: Path) -> Vanishing:
    desk = Vanishing(tmp_path / "studies")
    desk.create(STUDY)
    return desk


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", NAME)


def done(record: TrialRecord, objective: float) -> Tell:
    return Tell(NAME, record.trial.trial_id, "alice", TrialState.DONE, objective, {"energy_joules": 2.0}, "r1")


def test_a_study_goes_on_without_its_desk_and_tells_later(desk: Vanishing, spool: Spool) -> None:
    assert spool.lease_ahead(desk, 4, ALICE) == 4
    taken = [spool.take() for _ in range(5)]
    first, second, third, fourth = (record for record in taken if record)
    assert taken[4] is None
    assert [first, second, third, fourth] == desk.trials(NAME)
    spool.note(done(first, 1.0))
    spool.note(done(second, 2.0))
    spool.note(Tell(NAME, third.trial.trial_id, "alice", TrialState.INFEASIBLE, reason="no memory"))
    spool.note(Tell(NAME, fourth.trial.trial_id, "alice", TrialState.RELEASED, checkpoint="c.pt"))
    desk.answers = 1
    with pytest.raises(UnavailableError, match="no answer"):
        spool.deliver(desk)
    desk.answers = 1  # the first is not told again: a second answer would be missing
    assert spool.deliver(desk) == spool.deliver(desk) == []
    states = [TrialState.DONE, TrialState.DONE, TrialState.INFEASIBLE, TrialState.RELEASED]
    records = desk.trials(NAME)
    assert [record.trial.state for record in records] == states
    assert [record.trial.objective for record in records] == [1.0, 2.0, None, None]
    assert (records[0].run_id, dict(records[0].outcomes)) == ("r1", {"energy_joules": 2.0})
    assert (records[2].reason, records[3].checkpoint) == ("no memory", "c.pt")


def test_what_was_told_before_a_crash_is_told_again_and_changes_nothing(desk: Vanishing, spool: Spool) -> None:
    [record] = desk.suggest(NAME, 1, ALICE)
    spool.note(done(record, 1.0))
    desk.answers = 2
    spool.deliver(desk)
    [counted] = desk_files(spool, "*.delivered")
    counted.unlink()
    assert spool.deliver(desk) == []
    assert desk.answers == 0
    assert desk.trial(NAME, record.trial.trial_id).trial.objective == 1.0


def test_a_tell_for_a_trial_that_another_has_is_refused_and_the_rest_told(desk: Vanishing, spool: Spool) -> None:
    lost, kept = desk.suggest(NAME, 2, ALICE)
    spool.note(done(lost, 1.0))
    spool.note(done(kept, 2.0))
    desk.release(NAME, lost.trial.trial_id)
    desk.suggest(NAME, 1, BOB)
    desk.answers = 2
    [refusal] = spool.deliver(desk)
    assert refusal.tell == done(lost, 1.0)
    assert refusal.reason.endswith("is leased by 'bob', not by 'alice'")
    assert desk.trial(NAME, kept.trial.trial_id).trial.objective == 2.0


def test_a_half_written_last_line_waits_until_it_is_complete(desk: Vanishing, spool: Spool) -> None:
    one, two = desk.suggest(NAME, 2, ALICE)
    spool.note(done(one, 1.0))
    spool.note(done(two, 2.0))
    [journal] = desk_files(spool, "*.jsonl")
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-10])
    desk.answers = 9
    spool.deliver(desk)
    assert desk.trial(NAME, two.trial.trial_id).trial.state is TrialState.LEASED
    journal.write_bytes(whole)
    spool.deliver(desk)
    assert desk.trial(NAME, two.trial.trial_id).trial.objective == 2.0


def test_nobody_gets_a_trial_that_another_took(desk: Vanishing, tmp_path: Path) -> None:
    spools = [Spool(tmp_path / "spool", NAME) for _ in range(4)]
    spools[0].lease_ahead(desk, 20, ALICE)
    waiting, got = iter(spools), []

    def take() -> None:
        mine = next(waiting)
        while record := mine.take():
            got.append(record.trial.trial_id)

    in_threads(take, 4)
    assert sorted(got) == [record.trial.trial_id for record in desk.trials(NAME)]


ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from crosswind.data.errors import UnavailableError
from crosswind.data.trial import TrialState
from crosswind.models.tuner.offline import Spool, Tell
spool = Spool(Path(sys.argv[1]), "s")
spool.note(Tell("s", "t0", "alice", TrialState.DONE, 0.5))
[journal] = Path(sys.argv[1]).rglob("*.jsonl")
limit = journal.stat().st_size + 20  # room for part of a line
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    spool.note(Tell("s", "t1", "alice", TrialState.DONE, 1.5))
except UnavailableError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
spool.note(Tell("s", "t2", "alice", TrialState.DONE, 2.5))
print([line.split('"')[7] for line in journal.read_text().splitlines()])
"""


def test_a_full_disk_is_told_and_leaves_no_half_line(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", ON_A_FULL_DISK, os.fspath(tmp_path)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert told[0].endswith(".jsonl: File too large")
    assert told[1] == "['t0', 't2']"


def desk_files(spool: Spool, pattern: str) -> list[Path]:
    return sorted(spool._folder.rglob(pattern))
