"""Promises of every service about a study that is paused, goes on, or is stopped."""

import threading
from dataclasses import replace

import pytest
from tests.models.tuner.service.service_contract import ALICE, BOB, NAME, STUDY, in_threads

from crosswind.data.schema.errors import ConflictError, NotFoundError, PausedError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Configuration, StudyState, TrialState
from crosswind.models.tuner.service.service import Lease, StudyService

FIRST: Configuration = {"batch": 32, "fused": True}
SPACE = {"batch": {"kind": "int", "low": 1, "high": 200}}
AT_ONCE = 64


class StateContract:
    """The promises; a class that inherits them has a fixture `service`, which holds STUDY."""

    def test_a_paused_study_hands_out_nothing_and_takes_results(self, service: StudyService) -> None:
        held, given_back = service.suggest(NAME, 2, ALICE)
        service.release(NAME, given_back.trial_id)
        assert service.pause(NAME).state is StudyState.PAUSED
        assert service.status("s1").study.state is StudyState.PAUSED
        for lease in (BOB, Lease("carol", 60, "7_1")):
            with pytest.raises(PausedError, match="is paused: it hands out no trial until somebody resumes it"):
                service.suggest(NAME, 1, lease)
        service.heartbeat(NAME, held.trial_id, ALICE)
        assert service.complete(NAME, held.trial_id, 1.0, owner="alice").trial.state is TrialState.DONE
        [waiting] = service.enqueue(NAME, [FIRST])
        assert len(service.trials(NAME)) == 3
        assert service.resume(NAME).state is StudyState.RUNNING
        again = [record.trial_id for record in service.suggest(NAME, 2, BOB)]
        assert again == [given_back.trial_id, waiting.trial_id]

    def test_a_stopped_study_has_no_more_trials_and_may_go_on(self, service: StudyService) -> None:
        held, given_back = service.suggest(NAME, 2, ALICE)
        service.release(NAME, given_back.trial_id)
        assert service.stop(NAME).state is StudyState.STOPPED
        assert service.suggest(NAME, 1, BOB) == []
        assert not service.status(NAME).is_exhausted
        service.complete(NAME, held.trial_id, 1.0, owner="alice")
        assert service.status(NAME).is_exhausted
        with pytest.raises(ConflictError, match="is stopped: resume it first"):
            service.enqueue(NAME, [FIRST])
        with pytest.raises(ConflictError, match="is stopped, expected running: resume it first"):
            service.pause(NAME)
        service.resume(NAME)
        assert not service.status(NAME).is_exhausted
        assert service.suggest(NAME, 1, BOB)[0].trial_id == given_back.trial_id

    def test_the_same_state_again_changes_nothing(self, service: StudyService) -> None:
        assert service.resume(NAME) == STUDY
        assert service.pause(NAME) == service.pause(NAME) == replace(STUDY, state=StudyState.PAUSED)
        assert service.stop(NAME) == service.stop(NAME) == service.status(NAME).study
        with pytest.raises(NotFoundError, match="'n'"):
            service.pause("n")

    def test_a_request_that_pauses_counts_once(self, service: StudyService) -> None:
        request = RequestKey("p1", "pause")
        service.pause(NAME, request=request)
        service.resume(NAME)
        service.pause(NAME, request=request)
        assert service.status(NAME).study.state is StudyState.RUNNING

    def test_what_a_request_got_before_the_pause_it_gets_again_and_after_it_more(self, service: StudyService) -> None:
        before, later = RequestKey("k1", "suggest"), RequestKey("k2", "suggest")
        [held] = service.suggest(NAME, 1, ALICE, request=before)
        service.pause(NAME)
        assert service.suggest(NAME, 1, ALICE, request=before) == [held]
        with pytest.raises(PausedError):
            service.suggest(NAME, 1, BOB, request=later)
        service.resume(NAME)
        [new] = service.suggest(NAME, 1, BOB, request=later)
        assert (new.trial_id != held.trial_id, new.trial.state) == (True, TrialState.LEASED)

    def test_no_trial_is_given_once_the_pause_is_acknowledged(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", space=SPACE, search="random"))
        got: list[str] = []
        some = threading.Event()

        def work() -> None:
            lease = Lease(threading.current_thread().name, 600)
            try:
                while records := service.suggest("n", 1, lease):
                    got.extend(record.trial_id for record in records)
                    some.set()
            except PausedError:
                pass

        workers = threading.Thread(target=in_threads, args=(work, AT_ONCE))
        workers.start()
        assert some.wait(60)
        service.pause("n")
        leased = {record.trial_id for record in service.trials("n") if record.trial.state is TrialState.LEASED}
        workers.join(180)
        assert 0 < len(set(got)) == len(got)
        assert set(got) <= leased
        held = {record.trial_id for record in service.trials("n") if record.trial.state is TrialState.LEASED}
        assert held == set(got)
        service.resume("n")
        assert service.suggest("n", 1, ALICE)
