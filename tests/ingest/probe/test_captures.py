"""Captures in a rank: planned steps are traced by PyTorch's profiler, and no failure of it reaches the training."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tests.ingest.spooled import rows
from torch.autograd.profiler import profile as autograd_profile
from torch.profiler import ProfilerActivity, profile, schedule

import crosswind
from crosswind.ingest.capture.plan import FOLDER, Plan
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.kineto import KinetoReader
from crosswind.models.traces.steps import steps

STEPS = 12
PLAN = Plan("a-run", (0,), 3, 5, 10_000_000)
PREPARE = autograd_profile._prepare_trace
Body = Callable[[int], object]


def work(_step: int) -> None:
    torch.ones(64, 64) @ torch.ones(64, 64)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of plan and traces, as `crosswind run --trace` names it."""
    folder = tmp_path / "a-run.traces"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    monkeypatch.setenv("CROSSWIND_RUN_ID", "a-run")
    PLAN.write(folder)
    yield folder
    assert autograd_profile._prepare_trace is PREPARE  # PyTorch is left as it was


def train(tmp_path: Path, body: Body = work, count: int = STEPS) -> list[int]:
    """Train, and return the steps done."""
    done = []
    with crosswind.run(workload="made-up", spool=tmp_path, run_id="a-run") as run:
        for step in run.steps(range(count)):
            body(step)
            done.append(step)
    return done


def left(folder: Path) -> dict[str, str]:
    """Return the rest of a capture: traces, and reasons why there is none."""
    paths = sorted(path for path in folder.iterdir() if path.name != "plan.json")
    return {path.name: path.read_text() if path.suffix == ".refused" else "" for path in paths}


def test_the_planned_steps_are_traced_and_their_reader_finds_them(tmp_path: Path, folder: Path) -> None:
    assert train(tmp_path) == list(range(STEPS))
    assert left(folder) == {"rank0.step3-5.json.gz": ""}
    path = folder / "rank0.step3-5.json.gz"
    [trace] = KinetoReader().read(path, Report(str(path), "kineto"))
    assert len(steps(trace)) == 3
    recorded = rows(tmp_path, "step").set_index("step")
    others = set(recorded.index[recorded["other_seconds"] > 0])
    assert others == {3, 4, 5, 6}  # begun, marked twice, and written
    assert len(recorded) == STEPS


def test_ranks_that_are_not_planned_do_nothing(tmp_path: Path, folder: Path) -> None:
    Plan("a-run", (1, 2), 3, 5, 1000).write(folder)
    train(tmp_path)
    assert left(folder) == {}


def test_a_loop_that_ends_within_a_capture_keeps_the_whole_steps(tmp_path: Path, folder: Path) -> None:
    train(tmp_path, count=5)
    assert left(folder) == {"rank0.step3-4.json.gz": ""}


def test_an_error_within_a_capture_is_the_programs_alone(tmp_path: Path, folder: Path) -> None:
    def fail(step: int) -> None:
        if step == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(tmp_path, fail)
    assert left(folder) == {"rank0.step3-5.refused": "no captured step came to its end"}


def test_a_plan_that_comes_too_late_is_refused(tmp_path: Path, folder: Path) -> None:
    (folder / "plan.json").unlink()
    with crosswind.run(workload="made-up", spool=tmp_path, run_id="a-run") as run:
        for step in run.steps(range(STEPS)):
            if step == 7:
                PLAN.write(folder)
                run._captures.look()  # type: ignore[union-attr] - as the writer does
    assert left(folder) == {"rank0.step3-5.refused": "these steps were over when the plan arrived"}


def test_the_programs_own_profiler_has_priority(tmp_path: Path, folder: Path) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as theirs:
        train(tmp_path)
    assert any("mm" in event.key for event in theirs.key_averages())
    assert left(folder) == {"rank0.step3-5.refused": "the program's own profiler was at work"}


def test_a_profiler_that_the_program_starts_within_a_capture_ends_it(tmp_path: Path, folder: Path) -> None:
    seen = []

    def profiled(step: int) -> None:
        if step != 4:
            return work(step)
        with profile(activities=[ProfilerActivity.CPU]) as theirs:
            work(step)
        seen.append(len(theirs.key_averages()))
        return None

    assert train(tmp_path, profiled) == list(range(STEPS))
    assert seen[0] > 0
    assert left(folder) == {"rank0.step3-5.refused": "the program's own profiler was at work"}


def test_a_profiler_with_a_schedule_of_the_program_s_own_ends_all_captures(tmp_path: Path, folder: Path) -> None:
    traces = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=2, active=1),
        on_trace_ready=lambda theirs: traces.append(len(theirs.key_averages())),
        acc_events=True,  # without, PyTorch warns, and a warning is an error here
    ) as theirs:

        def stepped(step: int) -> None:
            work(step)
            theirs.step()

        train(tmp_path, stepped)
    assert len(traces) >= 2
    assert all(traces)
    assert left(folder) == {"rank0.step3-5.refused": "the program's own profiler was at work"}


def test_a_profiler_that_fails_is_reported_and_the_training_goes_on(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no profiler here")

    monkeypatch.setattr(profile, "start", fail)
    assert train(tmp_path) == list(range(STEPS))
    assert left(folder) == {"rank0.step3-5.refused": "RuntimeError: no profiler here"}
    assert "captures no more traces" in caplog.text


def test_a_full_disk_leaves_no_trace_and_a_reason(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.ingest.capture.files.BLOCK", 1000)
    Plan("a-run", (0,), 3, 5, 1500).write(folder)
    train(tmp_path)
    [(name, reason)] = left(folder).items()
    assert name == "rank0.step3-5.refused"
    assert "larger than the 1500 bytes" in reason


def test_without_a_plan_from_outside_the_probe_captures_nothing(tmp_path: Path) -> None:
    with crosswind.run(workload="made-up", spool=tmp_path, run_id="alone") as run:
        assert run._captures is None
