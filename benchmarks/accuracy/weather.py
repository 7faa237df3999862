"""The slowdown of the next runs forecast from those before, on our own runs under known faults (data/samples/lab).

Ratio: total step seconds over the median of the cohort's earlier runs, of which there must be four. Split: by time; the
weather learns from `train` and `calibrate`, chooses among its candidates there by its own backtest, and is asked once
about `test`, just before each run and ten minutes before it. Baseline: the climate, the quantiles of the ratios of
`train` and `calibrate`.

The lab draws its faults in a random order, so that there is no weather to foretell but the machine's own drift and the
neighbours: what is asked is that the forecast notices this, and is no worse than the climate.
"""

import json
import platform

import numpy as np
import pandas as pd

from benchmarks.accuracy.lab_during import Lab, lab
from benchmarks.accuracy.row import Row
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.forecast.observations import HOUR_NS
from crosswind.models.forecast.weather import Weather
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.surrogate import LEVELS

EARLIER_MIN = 4
HORIZONS_HOURS = (0.0, 1 / 30, 1 / 6)  # the whole campaign took 41 minutes
MEMORY_HOURS = (0.02, 0.1, 0.5)
WORSE_MAX = 0.02  # of skill below the climate that still counts as no worse


def ratios(samples: Lab) -> pd.DataFrame:
    """Columns started_ns known_ns workload log_ratio split."""
    rows = []
    for row, (run, past) in enumerate(zip(samples.runs, samples.past, strict=True)):
        earlier = [
            samples.past[other].seconds.sum() for other in range(row) if samples.past[other].cohort == past.cohort
        ]
        if len(earlier) >= EARLIER_MIN:
            ratio = float(np.log(past.seconds.sum() / np.median(earlier)))
            rows.append((run.started_ns, run.ended_ns, run.workload, ratio, run.tags["split"]))
    return pd.DataFrame(rows, columns=["started_ns", "known_ns", "workload", "log_ratio", "split"])


def forecast(weather: Weather, runs: pd.DataFrame, ahead_hours: float) -> Floats:
    """Log quantiles for each run, from what was known so long before it began, shape (n_runs, n_levels)."""
    said = []
    for started_ns, workload in zip(runs["started_ns"].to_numpy(np.int64), runs["workload"], strict=True):
        now_ns = int(started_ns) - max(int(ahead_hours * HOUR_NS), 1)
        said.append(np.log(weather.at(np.array([started_ns]), workload, now_ns=now_ns).values[0]))
    return np.array(said)


def rows() -> list[Row]:
    table = ratios(lab())
    past = table[table["split"] != "test"].drop(columns="split")
    test = table[table["split"] == "test"].drop(columns="split")
    weather = Weather(horizons_hours=HORIZONS_HOURS, memory_hours=MEMORY_HOURS).fit(past)
    weather.observe(test)  # a question looks back from its own time only
    climate = np.tile(np.quantile(past["log_ratio"], LEVELS), (len(test), 1))
    return [_row(weather, test, climate, ahead_hours) for ahead_hours in (0.0, HORIZONS_HOURS[-1])]


def _row(weather: Weather, test: pd.DataFrame, climate: Floats, ahead_hours: float) -> Row:
    truth = test["log_ratio"].to_numpy()
    said, naive = Prediction(LEVELS, forecast(weather, test, ahead_hours)), Prediction(LEVELS, climate)
    crps_skill = skill(pinball_loss(said, truth), pinball_loss(naive, truth))
    tried = ", ".join(f"{score.name} {score.skill:.3f}" for score in weather.scores)
    return Row(
        task=f"weather of the lab, {ahead_hours * 60:.0f} minutes ahead",
        split="by time: 70 % to learn and choose, the last 86 runs tested once",
        rows=len(test),
        figures={"crps_skill": crps_skill, "coverage_90": coverage(said, truth, low=0.05, high=0.95)},
        asked="no worse than the climate: faults were drawn in random order",
        holds=crps_skill >= -WORSE_MAX,
        baselines={"climate": {"crps_skill": 0.0, "coverage_90": coverage(naive, truth, low=0.05, high=0.95)}},
        note=f"chosen: {weather.chosen}; skill in the backtest before: {tried}",
    )


def main() -> None:
    task_rows = rows()
    for row in task_rows:
        print(f"{row.task} ({row.rows} runs): {dict(row.figures)}; {row.note}")
    figures = {
        f"{name}_{row.task.split(', ')[1]}": round(value, 4) for row in task_rows for name, value in row.figures.items()
    }
    print(json.dumps(figures | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}))


if __name__ == "__main__":
    main()
