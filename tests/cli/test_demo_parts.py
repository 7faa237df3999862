import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.cli.progress import Parts
from crosswind.cli.verbs.demo.disturbance import CpuTime, Disturbance, disturbance_between
from crosswind.cli.verbs.demo.loop import Checked, DemoResult, Explained
from crosswind.cli.verbs.demo.plan import CONFIGURATION, RUNS, STRENGTHS, PlannedRun, command, planned_runs
from crosswind.cli.verbs.demo.summary import score_line, summary
from crosswind.data.schema.answers.explanations import Explanation, Interval, Verdict
from crosswind.ingest.lab.faults import Fault
from crosswind.ingest.lab.warm import Trainer

HOG = PlannedRun(Fault("cpu_hog", 1, 2.0))
NOTHING = PlannedRun(None)


def explained(
    plan: PlannedRun, verdict: Verdict, cause: str | None, disturbance: Disturbance | None = None
) -> Explained:
    made = Explanation(
        run_id="r",
        verdict=verdict,
        sentence="It was so.",
        next_action="Do it.",
        cohort_runs=9,
        steps=10,
        measured_seconds=2.0,
        expected_seconds=1.0,
        excess=Interval(1.0, 0.9, 1.1),
        unexplained=Interval(1.0, 0.9, 1.1),
        cause=cause,
        confidence=0.9 if cause else None,
    )
    return Explained("RUN000001", plan, made, disturbance)


def test_the_plan_holds_every_fault_at_every_strength_and_as_many_runs_without_in_an_order_of_its_seed() -> None:
    runs = planned_runs(1)
    faults = [(run.fault.kind, run.fault.strength) for run in runs if run.fault]
    assert sorted(faults) == sorted((kind, strength) for kind, strengths in STRENGTHS.items() for strength in strengths)
    assert len(runs) == RUNS == 2 * len(faults)
    assert planned_runs(1) == runs != planned_runs(2)


def test_a_short_plan_has_each_kind_of_fault_once_at_its_strongest() -> None:
    faults = [run.fault for run in planned_runs(1, 6) if run.fault]
    assert {fault.kind: fault.strength for fault in faults} == {kind: max(all_) for kind, all_ in STRENGTHS.items()}
    assert len(faults) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--runs", "3"), "--runs 3: expected 4 to 12"), (("--trials", "-1"), "--trials -1: expected 0 to 100")],
)
def test_a_demo_of_too_little_is_refused_before_anything_starts(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["demo", "--home", str(tmp_path / "home"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


def test_the_truth_of_a_fault_is_the_cause_that_should_be_named() -> None:
    assert (HOG.truth, HOG.injected) == ("cpu_contention", "cpu_hog:1:2")
    assert (NOTHING.truth, NOTHING.injected) == (None, "none")


def test_the_command_carries_configuration_and_fault() -> None:
    words = command(steps=5, configuration=CONFIGURATION, fault=HOG.fault)
    assert {"--steps=5", "--bucket-mb=1.0", "--bucket-view=false", "--fault=cpu_hog:1:2"} <= set(words)


def test_the_score_counts_named_causes_and_false_alarms() -> None:
    runs = [
        explained(HOG, Verdict.SLOW, "cpu_contention"),
        explained(HOG, Verdict.SLOW, "network"),
        explained(HOG, Verdict.NORMAL, None),
        explained(NOTHING, Verdict.NORMAL, None),
        explained(NOTHING, Verdict.SLOW, None),
    ]
    assert score_line(runs) == (
        "1 of 3 injected causes were named. 1 of 2 runs with nothing injected were called slow."
    )


def test_what_the_machine_disturbed_counts_neither_for_nor_against() -> None:
    stolen = Disturbance("CPU steal", 0.3)
    wrong, right = (explained(plan, Verdict.SLOW, "cpu_contention", stolen) for plan in (NOTHING, HOG))
    text = summary(DemoResult(1, 60.0, (wrong, right), Checked(None, "too few", 0.045, "FRESH"), None))
    assert text.count("disturbed by: CPU steal (30%)") == 2
    assert "NO" not in text
    assert score_line([wrong, right]).startswith("2 of 2 runs do not count")
    assert score_line([wrong, right, explained(HOG, Verdict.NORMAL, None)]).startswith(
        "0 of 1 injected causes were named. 0 of 0 runs"
    )


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (CpuTime(120.0, 5.0, 60.0, 50.0), None),
        (CpuTime(120.0, 7.0, 60.0, 50.0), Disturbance("CPU steal", 0.1)),
        (CpuTime(120.0, 6.0, 63.0, 50.0), Disturbance("other programs", 0.15)),
        (CpuTime(100.0, 50.0, 60.0, 50.0), None),
    ],
    ids=["nothing", "hypervisor", "programs", "no time passed"],
)
def test_the_larger_disturbance_has_the_name(after: CpuTime, expected: Disturbance | None) -> None:
    assert disturbance_between(CpuTime(100.0, 5.0, 50.0, 40.0), after) == expected


def test_the_kernel_counts_what_this_process_used_and_what_passed() -> None:
    before = CpuTime.now()
    began = time.process_time()
    while time.process_time() - began < 0.2:
        pass
    after = CpuTime.now()
    assert after.own - before.own >= 0.2
    assert after.busy - before.busy >= 0.1  # by ticks of 10 ms, so about twice as much
    assert after.passed > before.passed


def test_what_a_trainer_used_is_not_that_of_other_programs() -> None:
    here = Trainer(os.getpid(), Path("/nowhere"))
    before = CpuTime.now(here).own - CpuTime.now().own
    subprocess.run([sys.executable, "-S", "-c", "sum(range(10_000_000))"], check=True)
    assert CpuTime.now(here).own - CpuTime.now().own >= before + 0.05


def test_the_summary_says_where_it_was_wrong_and_why_it_did_not_predict() -> None:
    checked = Checked(None, "3 repeats, expected 4", 0.045, "FRESH")
    wrong = explained(HOG, Verdict.SLOW, "network")
    text = summary(DemoResult(1, 60.0, (wrong,), checked, None))
    assert "NO" in text
    assert "not predicted: 3 repeats, expected 4" in text
    assert "45.0 ms" in text


def test_progress_says_a_line_a_part_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with Parts(2, stream=stream) as progress:
        progress.start("first")
        progress.done("took 3 s")
        progress.start("second")
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("[1/2")
    assert lines[1] == "  took 3 s"
    assert lines[2].endswith("second")
