import io
from collections import Counter

from crosswind.cli.demo.loop import Checked, DemoResult, Explained
from crosswind.cli.demo.plan import CONFIGURATION, STRENGTHS, UNDISTURBED, PlannedRun, command, planned_runs
from crosswind.cli.demo.summary import score_line, summary
from crosswind.cli.progress import Progress
from crosswind.ingest.lab.faults import Fault
from crosswind.models.explain.explanation import Explanation, Interval, Verdict

HOG = PlannedRun(Fault("cpu_hog", 1, 2.0))
NOTHING = PlannedRun(None)


def explained(plan: PlannedRun, verdict: Verdict, cause: str | None) -> Explained:
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
    return Explained("RUN000001", plan, made)


def test_the_plan_holds_every_fault_at_every_strength_and_undisturbed_runs_in_an_order_of_its_seed() -> None:
    runs = planned_runs(1)
    kinds = Counter(run.fault.kind for run in runs if run.fault)
    assert kinds == {kind: len(strengths) for kind, strengths in STRENGTHS.items()}
    assert sum(run.truth is None for run in runs) == UNDISTURBED
    assert planned_runs(1) == runs != planned_runs(2)


def test_the_truth_of_a_fault_is_the_cause_that_should_be_named() -> None:
    assert (HOG.truth, HOG.injected) == ("cpu_contention", "cpu_hog:1:2")
    assert (NOTHING.truth, NOTHING.injected) == (None, "none")


def test_the_command_carries_configuration_and_fault() -> None:
    words = command("torchrun", steps=5, configuration=CONFIGURATION, fault=HOG.fault)
    assert {"--steps=5", "--bucket-mb=1.0", "--bucket-view=false", "--fault=cpu_hog:1:2"} <= set(words)


def test_the_score_counts_named_causes_and_false_alarms() -> None:
    runs = [
        explained(HOG, Verdict.SLOW, "cpu_contention"),
        explained(HOG, Verdict.SLOW, "network"),
        explained(HOG, Verdict.NORMAL, None),
        explained(NOTHING, Verdict.NORMAL, None),
        explained(NOTHING, Verdict.SLOW, None),
    ]
    assert score_line(runs).startswith("1 of 3 disturbed runs")
    assert "1 of 2 undisturbed" in score_line(runs)


def test_the_summary_says_where_it_was_wrong_and_why_it_did_not_predict() -> None:
    checked = Checked(None, "3 repeats, expected 4", 0.045, "FRESH")
    wrong = explained(HOG, Verdict.SLOW, "network")
    text = summary(DemoResult(1, 60.0, (wrong,), checked, None))
    assert "NO" in text
    assert "not predicted: 3 repeats, expected 4" in text
    assert "45.0 ms" in text


def test_progress_says_a_line_a_part_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with Progress(2, stream=stream) as progress:
        progress.start("first")
        progress.done()
        progress.start("second")
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("[1/2")
    assert lines[1].endswith("second")
