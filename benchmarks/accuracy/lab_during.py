"""The total seconds of a run that is in progress, on our own runs under known faults (data/samples/lab).

What is predicted: the sum over a run's 60 steps of the slowest rank's duration, after the first 6, 15, 30 and 45 steps.
Split: by time, as the runs' tag has it. How the forecast is made was chosen on `train` and `calibrate`; `test` is asked
once. Each test run is forecast from all runs that came before it, with those of `test`. No tag is read by a model.

Loss: CRPS of the logarithm of seconds, so that every cohort counts alike (twice the mean pinball loss at LEVELS), and
beside it that of seconds. Baselines: always the cohort's median before the start, spread by the cohort's own past
ratios (models/baseline.py); and `as_it_goes`, the steps so far times 60 / steps, spread by how far that was off in all
earlier runs. The oracle reads from `injections` when the first disturbance begins or ends after the steps seen, and
knows the run's level until then exactly; that a later one comes it does not know, but how often and how bad they were
in earlier runs.
"""

import json
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.row import Row
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.schema.run import Run
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.baseline import AlwaysMedian, distribution, one_step_errors
from crosswind.models.forecast.in_run import InRunForecaster
from crosswind.models.forecast.past_runs import PastRun
from crosswind.models.forecast.profile import shape_of
from crosswind.models.forecast.stored_runs import past_runs
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.surrogate import LEVELS

FRACTIONS = (0.1, 0.25, 0.5, 0.75)
ASKED = 0.5  # CRPS skill after the first tenth


@dataclass(frozen=True)
class Lab:
    """Runs in the order of time with their steps, and for each the times at which a disturbance began or ended."""

    runs: tuple[Run, ...]
    past: tuple[PastRun, ...]
    step_began_ns: tuple[Floats, ...]
    changes_ns: tuple[Floats, ...]

    @property
    def totals(self) -> Floats:
        return np.array([run.seconds.sum() for run in self.past])

    def of_split(self, split: str) -> list[int]:
        return [row for row, run in enumerate(self.runs) if run.tags["split"] == split]


@cache
def lab() -> Lab:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        load_lab_samples(store)
        runs = sorted((run for run in all_runs(store) if "split" in run.tags), key=lambda run: run.started_ns or 0)
        sql = "select run_id, min(ts_ns) as ns from step group by run_id, step order by run_id, step"
        began = {str(name): rows["ns"].to_numpy(np.float64) for name, rows in store.lake.frame(sql).groupby("run_id")}
        with store.catalog.read() as session:
            injected = session.injections.of_runs([run.run_id for run in runs])
        times = {
            run.run_id: [
                ns
                for injection in injected
                if injection.run_id == run.run_id
                for ns in (injection.started_ns, injection.ended_ns)
            ]
            for run in runs
        }
        changes = tuple(np.array(times[run.run_id], dtype=np.float64) for run in runs)
        return Lab(tuple(runs), tuple(past_runs(store, runs)), tuple(began[run.run_id] for run in runs), changes)


def forecasts(samples: Lab, rows: Sequence[int]) -> dict[float, Floats]:
    """Log quantiles of the totals of these runs by fraction seen, each (n_rows, n_levels)."""
    log_quantiles: dict[float, list[Floats]] = {fraction: [] for fraction in FRACTIONS}
    for row in rows:
        run = samples.past[row]
        total = len(run.seconds)
        progress = InRunForecaster(FRACTIONS).fit(samples.past[:row]).start(run.cohort, total)
        for fraction in FRACTIONS:
            seen = slice(progress.pace.count, round(fraction * total))
            progress.observe(run.seconds[seen], {name: values[seen] for name, values in run.signals.items()})
            log_quantiles[fraction].append(np.log(progress.total().values[0]))
    return {fraction: np.array(values) for fraction, values in log_quantiles.items()}


def always_median(samples: Lab, rows: Sequence[int]) -> Floats:
    return np.array([np.log(_of_cohort(samples, row)) for row in rows])


def _of_cohort(samples: Lab, row: int) -> Floats:
    earlier = [other for other in range(row) if samples.past[other].cohort == samples.past[row].cohort]
    seconds = samples.totals[earlier]
    said: Floats = distribution(AlwaysMedian().forecast(seconds), one_step_errors(AlwaysMedian(), seconds)).values[0]
    return said


def as_it_goes(samples: Lab, rows: Sequence[int], fraction: float) -> Floats:
    extrapolated = np.array([_extrapolated(run.seconds, fraction) for run in samples.past])
    errors = np.log(samples.totals / extrapolated)
    return np.array([np.log(distribution(extrapolated[row], errors[:row]).values[0]) for row in rows])


def _extrapolated(seconds: Floats, fraction: float) -> float:
    return float(np.mean(seconds[: round(fraction * len(seconds))])) * len(seconds)


def oracle(samples: Lab, rows: Sequence[int], fraction: float) -> Floats:
    """Knows each run's level until something changes; spread by what changes did to earlier runs."""
    shapes = {
        run.cohort: shape_of([other.seconds for other in samples.past if other.cohort == run.cohort])
        for run in samples.past
    }
    unchanged = np.array([_unchanged(samples, row, fraction, shapes) for row in range(len(samples.past))])
    ratios = np.log(samples.totals / unchanged)
    return np.array([np.log(unchanged[row]) + np.quantile(ratios[:row], LEVELS) for row in rows])


def _unchanged(samples: Lab, row: int, fraction: float, shapes: dict[str, Floats]) -> float:
    """The run's total had nothing changed after the fraction seen."""
    seconds, began = samples.past[row].seconds, samples.step_began_ns[row]
    seen = round(fraction * len(seconds))
    later = [ns for ns in samples.changes_ns[row] if began[seen] < ns < began[-2]]
    if not later:
        return float(seconds.sum())
    until = max(int(np.searchsorted(began, min(later))) - 1, seen)
    shape = shapes[samples.past[row].cohort]
    level = float(np.exp(np.median(np.log(seconds[:until] / shape[:until]))))
    return float(seconds[:until].sum() + level * shape[until:].sum())


def has_change(samples: Lab, rows: Sequence[int], fraction: float) -> NDArray[np.bool_]:
    """Return for each row whether a disturbance begins or ends after the fraction seen."""
    changed = []
    for row in rows:
        began = samples.step_began_ns[row]
        first = began[round(fraction * len(began))]
        changed.append(any(first < ns < began[-2] for ns in samples.changes_ns[row]))
    return np.array(changed)


def loss(log_quantiles: Floats, seconds: Floats) -> float:
    return pinball_loss(Prediction(LEVELS, log_quantiles), np.log(seconds))


def loss_in_seconds(log_quantiles: Floats, seconds: Floats) -> float:
    return pinball_loss(Prediction(LEVELS, np.exp(log_quantiles)), seconds)


def figures(said: Floats, naive: Floats, seconds: Floats) -> dict[str, float]:
    covered = coverage(Prediction(LEVELS, said), np.log(seconds), low=0.05, high=0.95)
    return {
        "crps_skill": skill(loss(said, seconds), loss(naive, seconds)),
        "crps_skill_of_seconds": skill(loss_in_seconds(said, seconds), loss_in_seconds(naive, seconds)),
        "coverage_90": covered,
        "median_ape": float(np.median(np.abs(np.exp(said[:, LEVELS.index(0.5)]) / seconds - 1))),
    }


def rows(split: str = "test") -> list[Row]:
    """One row a fraction of the steps seen; `split` other than `test` is for choosing."""
    samples = lab()
    asked = samples.of_split(split)
    seconds = samples.totals[asked]
    naive, said = always_median(samples, asked), forecasts(samples, asked)
    return [_row(samples, asked, fraction, (said[fraction], naive, seconds)) for fraction in FRACTIONS]


def _row(samples: Lab, asked: Sequence[int], fraction: float, compared: tuple[Floats, Floats, Floats]) -> Row:
    said, naive, seconds = compared
    changed = has_change(samples, asked, fraction)
    steady = skill(loss(said[~changed], seconds[~changed]), loss(naive[~changed], seconds[~changed]))
    ours = figures(said, naive, seconds) | {"crps_skill_where_nothing_changes": steady}
    is_asked = fraction == FRACTIONS[0]
    return Row(
        task=f"lab runs: seconds of all steps after {fraction:.0%} of them",
        split="by time: 70 % to learn and choose, the last 86 runs tested once, each from all runs before it",
        rows=len(asked),
        figures=ours,
        asked=f"crps_skill >= {ASKED:.0%} over always-the-cohort-median" if is_asked else "nothing: shown beside",
        holds=ours["crps_skill"] >= ASKED or not is_asked,
        baselines={
            "always_median": figures(naive, naive, seconds),
            "as_it_goes": figures(as_it_goes(samples, asked, fraction), naive, seconds),
            "oracle_of_the_level": figures(oracle(samples, asked, fraction), naive, seconds),
        },
        note=f"in {np.mean(changed):.0%} of the runs a disturbance begins or ends after the steps seen; "
        "oracle_of_the_level knows all but what that changes",
    )


def main() -> None:
    task_rows = rows()
    for row in task_rows:
        print(f"{row.task} ({row.rows} runs; {row.note})")
        for name, values in {"forecast": row.figures, **row.baselines}.items():
            print(f"  {name:<22}" + "  ".join(f"{figure} {value:.3f}" for figure, value in values.items()))
    flat = {
        f"{name}_at_{fraction:.0%}": round(value, 4)
        for fraction, row in zip(FRACTIONS, task_rows, strict=True)
        for name, value in row.figures.items()
    }
    print(json.dumps(flat | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}))


if __name__ == "__main__":
    main()
