"""Trials whose runs an external cause disturbed are measured again, not believed."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from crosswind.cli.verbs.tune.asker import asking_process
from crosswind.cli.verbs.tune.execution.doubts import LOST, REPEATS, Doubts
from crosswind.cli.verbs.tune.execution.evaluation import OK, Evaluation, Program
from crosswind.cli.verbs.tune.execution.records import stored_judge
from crosswind.cli.verbs.tune.outbox import Outbox, TrialResult
from crosswind.cli.verbs.tune.where import store_service
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.studies import Disturbance, DisturbanceBasis, LostTime
from crosswind.data.schema.run import cohort_key
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.settings import Settings

STUDY = Study("s1", "ddp", {"batch": {"kind": "ordinal", "values": [1, 2, 4]}}, "loss", "", 0, 1)


def judging(*shares: float) -> Callable[[str], Disturbance]:
    """Says of one run after another that a neighbour took this share of its time."""
    left: Iterator[float] = iter(shares)

    def judge(run_id: str) -> Disturbance:
        share = next(left)
        lost = (LostTime("cpu_contention", share, share / 2, share),) if share else ()
        return Disturbance(run_id, DisturbanceBasis.OWN_RUNS, lost, bool(share), f"A neighbour took {share}.")

    return judge


def done(run_id: str, objective: float) -> TrialResult:
    return TrialResult("ddp", "t1", TrialState.DONE, objective, run_id=run_id, outcomes={"run_seconds": objective})


def test_the_first_undisturbed_run_counts(capsys: pytest.CaptureFixture[str]) -> None:
    doubts = Doubts(judging(0.4, 0.0))
    assert doubts.wants_again(done("r1", 9.0))
    assert "trial t1: A neighbour took 0.4." in capsys.readouterr().err
    assert not doubts.wants_again(done("r2", 5.0))
    assert doubts.believed(done("r2", 5.0)) == done("r2", 5.0)


def test_of_runs_that_were_all_disturbed_the_least_one_counts_and_tells_by_how_much(
    capsys: pytest.CaptureFixture[str],
) -> None:
    doubts = Doubts(judging(0.4, 0.2, 0.3))
    asked = [doubts.wants_again(done(f"r{number}", number)) for number in range(REPEATS + 1)]
    assert asked == [True] * REPEATS + [False]
    assert "That was the last of 2 repeats: the least disturbed run counts." in capsys.readouterr().err
    believed = doubts.believed(done("r2", 2.0))
    assert believed is not None
    assert (believed.run_id, believed.objective, believed.outcomes) == ("r1", 1.0, {"run_seconds": 1.0, LOST: 0.2})


def test_a_repeat_that_breaks_takes_nothing_back_and_one_that_is_preempted_gives_the_trial_back() -> None:
    doubts = Doubts(judging(0.4))
    assert doubts.wants_again(done("r1", 9.0))
    broken, back = TrialResult("ddp", "t1", TrialState.FAILED, reason="exit code 1"), TrialResult("ddp", "t1", None)
    assert not doubts.wants_again(broken)
    believed = doubts.believed(broken)
    assert believed is not None
    assert (believed.run_id, believed.outcomes[LOST]) == ("r1", 0.4)
    assert doubts.believed(back) == back
    assert doubts.believed(None) == doubts.believed(broken)
    assert Doubts(judging()).believed(broken) == broken


def test_what_nothing_tells_of_is_believed() -> None:
    doubts = Doubts(lambda _: None)
    assert not doubts.wants_again(done("r1", 9.0))
    assert doubts.believed(done("r1", 9.0)) == done("r1", 9.0)


def test_a_disturbed_trial_runs_its_program_again_under_another_run(tmp_path: Path) -> None:
    folders = {"CROSSWIND_HOME": str(tmp_path / "home"), "CROSSWIND_SPOOL": str(tmp_path / "spool")}
    settings = Settings.from_environment(folders)
    counter = 'n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count; echo "loss=$((9 - n))"'
    command = ("bash", "-c", f"cd {tmp_path} && {counter}")
    program = Program(command, settings.spool, pattern=re.compile(r"loss=(\S+)"), agent_seconds=None, injects=False)
    with store_service(settings) as service, asking_process(60.0) as holder:
        service.create(STUDY)
        [leased] = service.suggest("ddp", 1, holder)
        outbox = Outbox.below(settings.spool, ("store", ""))
        evaluation = Evaluation(service, STUDY, program, holder, outbox)
        evaluation.doubts = lambda: Doubts(judging(0.5, 0.0))
        ended = evaluation.evaluate(leased, "01J00000000000000000000001")
        kept = service.trial("ddp", leased.trial_id)
    assert ended.exit_code == OK
    assert (kept.trial.state, kept.trial.objective) == (TrialState.DONE, 8.0)
    assert kept.run_id not in {None, "01J00000000000000000000001"}
    assert LOST not in kept.outcomes


class Trials:
    """A service that knows which runs the study's other trials had."""

    def __init__(self, run_ids: Sequence[str]) -> None:
        self._told = [TrialRecord(Trial({"batch": 1}, TrialState.DONE, 1.0), "s1", run_id=run_id) for run_id in run_ids]

    def trials(self, study: str) -> list[TrialRecord]:
        assert study == "s1"
        return self._told


def test_measured_runs_are_judged_by_the_local_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(tmp_path / "home") as store:
        load_lab_samples(store)
        runs = [run for run in all_runs(store) if run.tags.get("split") in {"train", "calibrate"}]
        with store.catalog.read() as session:
            injected = session.injections.of_runs([run.run_id for run in runs])

        @contextmanager
        def opened() -> Iterator[Store]:
            yield store

        hogged = [injection for injection in injected if injection.kind == "cpu_hog" and injection.strength >= 2]
        quiet = {run.run_id for run in runs} - {injection.run_id for injection in injected}
        by_id = {run.run_id: run for run in runs}
        alike = [run_id for run_id in sorted(quiet) if cohort_key(by_id[run_id]) == cohort_key(by_id[hogged[0].run_id])]
        judge = stored_judge(opened, Trials(alike), STUDY)  # type: ignore[arg-type]
        disturbed, undisturbed, unknown = judge(hogged[0].run_id), judge(alike[0]), judge("nobody")
    assert disturbed is not None
    assert disturbed.is_disturbed
    assert undisturbed is not None
    assert not undisturbed.is_disturbed
    assert unknown is None
    assert "nothing tells whether run nobody was disturbed" in capsys.readouterr().err
