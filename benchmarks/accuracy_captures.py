"""The share of faults whose rank is among the 2 that are traced, replayed on the lab's samples with 3 or 4 ranks.

Counted are faults during which the run's steps took 10 % longer than those of its undisturbed cohort. A capture for
another reason than the baseline, after the fault had begun, is right if the rank is in it. Faults of one rank come
first; of the others a rank need not be to blame. The rules were looked at on these runs while they were made.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from statistics import fmean

import pyarrow.parquet as pq

from benchmarks.accuracy.lab_stragglers import OF_A_RANK
from crosswind.data.samples.lab_runs import records_of
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import NANOSECOND
from crosswind.ingest.capture.chooser import Chooser, Reason
from crosswind.ingest.capture.steps import RankStep

TRACED, SIZES, SLOWER, WARM = 2, (3, 4), 1.1, 5
COLUMNS = ["run_id", "rank", "step", "ts_ns", "duration_seconds", "comm_seconds"]
Steps = Sequence[tuple[int, int, RankStep]]  # begin and end, ns


@dataclass
class Tally:
    """Faults of one kind in runs of one size."""

    faults: int = 0
    captured: int = 0
    right: int = 0


def main() -> None:
    with as_file(files("crosswind.data.samples") / "lab") as folder:
        runs = [run for run in records_of(Run, pq.read_table(folder / "runs.parquet")) if run.world_size in SIZES]
        injected = records_of(Injected, pq.read_table(folder / "injections.parquet"))
        steps = steps_of(pq.read_table(folder / "step.parquet", columns=COLUMNS).to_pylist())
    usual = usual_steps(runs, steps)
    tallies: dict[tuple[int, str], Tally] = defaultdict(Tally)
    quiet = [bool(list(captures(steps[run.run_id]))) for run in runs if run.tags["injected"] == "none"]
    for run in runs:
        made = list(captures(steps[run.run_id]))
        for fault in injected:
            if fault.run_id == run.run_id and slowed(steps[run.run_id], fault, usual.get(cohort(run), 0.0)):
                tally = tallies[run.world_size or 0, fault.kind]
                after = [ranks for ns, ranks in made if ns >= fault.started_ns]
                tally.faults += 1
                tally.captured += bool(after)
                tally.right += any(fault.rank in ranks for ranks in after)
    tell(tallies, quiet)


def steps_of(rows: Sequence[dict[str, int]]) -> dict[str, Steps]:
    """Return the steps of each run in the order in which they ended."""
    by_run: dict[str, list[tuple[int, int, RankStep]]] = defaultdict(list)
    for row in rows:
        duration, waited = row["duration_seconds"], row["comm_seconds"]
        step = RankStep(row["rank"], row["step"], (duration - waited) * NANOSECOND, waited * NANOSECOND)
        by_run[str(row["run_id"])].append((row["ts_ns"], row["ts_ns"] + duration, step))
    return {run_id: sorted(steps, key=lambda step: step[1]) for run_id, steps in by_run.items()}


def captures(steps: Steps) -> Iterator[tuple[int, set[int]]]:
    """Yield the captures of a run but for the baseline: when they were chosen, ns, and their ranks."""
    chooser = Chooser(TRACED)
    for _, end, step in steps:
        if choice := chooser.observe((step,)):
            chooser.taken(choice)
            if choice.reason is not Reason.BASELINE:
                yield end, set(choice.ranks)


def cohort(run: Run) -> tuple[object, ...]:
    return run.workload, run.world_size, tuple(sorted(run.configuration.items()))


def usual_steps(runs: Sequence[Run], steps: dict[str, Steps]) -> dict[tuple[object, ...], float]:
    """Return the mean seconds of an undisturbed step of each cohort."""
    seconds: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for run in runs:
        if run.tags["injected"] == "none":
            seconds[cohort(run)] += [step.own + step.waited for _, _, step in steps[run.run_id] if step.step >= WARM]
    return {key: fmean(values) for key, values in seconds.items()}


def slowed(steps: Steps, fault: Injected, usual: float) -> bool:
    """Return whether steps during a fault took so much longer than undisturbed ones; unknown counts as no."""
    during = [
        step.own + step.waited
        for begin, end, step in steps
        if end >= fault.started_ns and begin <= fault.ended_ns and step.step >= WARM and step.rank == fault.rank
    ]
    return bool(during and usual) and fmean(during) >= SLOWER * usual


def tell(tallies: dict[tuple[int, str], Tally], quiet: Sequence[bool]) -> None:
    figures: dict[str, float] = {}
    print(f"{'ranks':>5} {'fault':<20}{'faults':>7}{'captured':>10}{'right':>7}")
    for (ranks, kind), tally in sorted(tallies.items(), key=lambda item: (item[0][1] not in OF_A_RANK, item[0])):
        print(f"{ranks:>5} {kind:<20}{tally.faults:>7}{tally.captured:>10}{tally.right:>7}")
    for ranks in SIZES:
        chosen = [tally for (size, kind), tally in tallies.items() if size == ranks and kind in OF_A_RANK]
        figures[f"faults_of_a_rank_of_{ranks}"] = sum(tally.faults for tally in chosen)
        figures[f"captured_of_{ranks}"] = sum(tally.captured for tally in chosen)
        figures[f"right_of_{ranks}"] = sum(tally.right for tally in chosen)
    print(f"undisturbed runs {len(quiet)}, with a capture besides the baseline {sum(quiet)}")
    print(json.dumps(figures | {"undisturbed": len(quiet), "undisturbed_captured": sum(quiet)}))


if __name__ == "__main__":
    main()
