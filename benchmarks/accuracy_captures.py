"""The share of faults whose rank is among the 2 that are traced, replayed on runs of the lab with 3 or 4 ranks.

Counted are faults during which the run's steps took 10 % longer than those of its undisturbed cohort. A capture for
another reason than the baseline, after the fault had begun, is right if the rank is in it: `first` counts the first
one alone, `right` any, as a run may have several. Faults of one rank come first; of the others a rank need not be to
blame. The rules were made on the lab's samples and on the `development` folders, runs of `crosswind lab run --plan
captures` with seeds 3, 11, 12 and 13. The `held_out` folders are runs of that plan with seeds 14 and 15, asked once,
after all changes of rules.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from math import sqrt
from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq

from benchmarks.accuracy.lab_stragglers import OF_A_RANK
from crosswind.data.samples.lab_runs import records_of
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import NANOSECOND
from crosswind.ingest.capture.chooser import Choice, Chooser, Reason
from crosswind.ingest.capture.steps import RankStep

FOLDER = Path(__file__).parent / "accuracy" / "captures"
RECORDED = ("development_1", "development_2", "development_3", "development_4", "held_out_1", "held_out_2")
TRACED, SIZES, SLOWER, WARM = 2, (3, 4), 1.1, 5
COLUMNS = ["run_id", "rank", "step", "ts_ns", "duration_seconds", "comm_seconds"]
Steps = Sequence[tuple[int, int, RankStep]]  # begin and end, ns


@dataclass
class Tally:
    """Faults of one kind in runs of one size."""

    faults: int = 0
    captured: int = 0
    first: int = 0
    right: int = 0


def main() -> None:
    with as_file(files("crosswind.data.samples") / "lab") as folder:
        figures = judged("samples", folder)
    for name in RECORDED:
        figures |= judged(name, FOLDER / name)
    print(json.dumps(figures))


def judged(name: str, folder: Path) -> dict[str, float]:
    """Print the faults of a folder of recorded runs by kind, and return the figures."""
    runs = [run for run in records_of(Run, pq.read_table(folder / "runs.parquet")) if run.world_size in SIZES]
    injected = records_of(Injected, pq.read_table(folder / "injections.parquet"))
    steps = steps_of(pq.read_table(folder / "step.parquet", columns=COLUMNS).to_pylist())
    usual = usual_steps(runs, steps)
    tallies: dict[tuple[int, str], Tally] = defaultdict(Tally)
    undisturbed = [list(captures(steps[run.run_id])) for run in runs if run.tags["injected"] == "none"]
    noticed = [any(choice.reason is not Reason.QUIET for _, choice in made) for made in undisturbed]
    for run in runs:
        made = list(captures(steps[run.run_id]))
        for fault in injected:
            if fault.run_id == run.run_id and slowed(steps[run.run_id], fault, usual.get(cohort(run), 0.0)):
                tally = tallies[run.world_size or 0, fault.kind]
                after = [choice.ranks for ns, choice in made if ns >= fault.started_ns]
                tally.faults += 1
                tally.captured += bool(after)
                tally.first += any(fault.rank in ranks for ranks in after[:1])
                tally.right += any(fault.rank in ranks for ranks in after)
    return printed(name, tallies, noticed)


def steps_of(rows: Sequence[dict[str, int]]) -> dict[str, Steps]:
    """Return the steps of each run in the order in which they ended."""
    by_run: dict[str, list[tuple[int, int, RankStep]]] = defaultdict(list)
    for row in rows:
        duration, waited = row["duration_seconds"], row["comm_seconds"]
        step = RankStep(row["rank"], row["step"], (duration - waited) * NANOSECOND, waited * NANOSECOND)
        by_run[str(row["run_id"])].append((row["ts_ns"], row["ts_ns"] + duration, step))
    return {run_id: sorted(steps, key=lambda step: step[1]) for run_id, steps in by_run.items()}


def captures(steps: Steps) -> Iterator[tuple[int, Choice]]:
    """Yield the captures of a run but for the baseline, and when they were chosen, ns."""
    chooser = Chooser(TRACED)
    for _, end, step in steps:
        if choice := chooser.observe((step,)):
            chooser.taken(choice)
            if choice.reason is not Reason.BASELINE:
                yield end, choice


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


def printed(name: str, tallies: dict[tuple[int, str], Tally], noticed: Sequence[bool]) -> dict[str, float]:
    figures: dict[str, float] = {}
    print(f"{name}\n{'ranks':>5} {'fault':<20}{'faults':>7}{'captured':>10}{'first':>7}{'right':>7}")
    for (ranks, kind), tally in sorted(tallies.items(), key=lambda item: (item[0][1] not in OF_A_RANK, item[0])):
        print(f"{ranks:>5} {kind:<20}{tally.faults:>7}{tally.captured:>10}{tally.first:>7}{tally.right:>7}")
    for ranks in sorted({ranks for ranks, _ in tallies}):
        chosen = [tally for (size, kind), tally in tallies.items() if size == ranks and kind in OF_A_RANK]
        faults, captured, first, right = (
            sum(getattr(tally, figure) for tally in chosen) for figure in ("faults", "captured", "first", "right")
        )
        figures[f"{name}_faults_of_a_rank_of_{ranks}"] = faults
        figures[f"{name}_captured_of_{ranks}"] = captured
        figures[f"{name}_first_of_{ranks}"] = first
        figures[f"{name}_right_of_{ranks}"] = right
        low, high = wilson(right, faults)
        print(f"of {ranks} ranks: {right} of {faults} right ({low:.0%} to {high:.0%}), {first} at once")
    print(f"undisturbed runs {len(noticed)}, in which something was noticed {sum(noticed)}\n")
    return figures | {f"{name}_undisturbed": len(noticed), f"{name}_undisturbed_noticed": sum(noticed)}


def wilson(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share. Source: Wilson 1927."""
    if not count:
        return 0.0, 1.0
    share, square = right / count, 1.96**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = 1.96 * sqrt(share * (1 - share) / count + square / (4 * count**2)) / (1 + square / count)
    return middle - half, middle + half


if __name__ == "__main__":
    main()
