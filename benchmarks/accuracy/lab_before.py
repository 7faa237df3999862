"""Skill of predicting a run's time from what is known before it, over its cohort's past, on the lab's samples.

Split: by the order of time, as the samples' tag `split` has it. The model, its conditions and constants were chosen by
forecasts one step ahead within `train` and `calibrate`; `test` was looked at last. A test run is predicted from all
runs of the lab's plan that ended before it began. The tags choose rows here and tell the oracles; no model sees them.
Loss: pinball of log seconds, twice its mean over LEVELS, which estimates the CRPS.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.accuracy.row import Row
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.schema.run import Run, cohort_key
from crosswind.data.store.features import all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.baseline import BASELINES, distribution, one_step_errors
from crosswind.models.conditions import conditions_at_start
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.spread import PREDICTIVE, CohortSpread
from crosswind.models.surrogate import LEVELS

OUTCOMES = {"run time": "run_seconds", "median step": "step_p50_seconds"}
REFIT_RUNS = 8  # between two fits the model only observes
STEPS = 60  # of every run
ASKED_SKILL, ASKED_COVERAGE = 0.15, (0.88, 0.92)
ASKED = "CRPS skill over always the cohort's median >= 15 %, the 90 % interval covers 88-92 %"
SPLIT = "86 latest runs of 407, each from all runs that ended before it; chosen on the 321 before"
FROM, TO = re.compile(r"from step (\d+)"), re.compile(r"to step (\d+)")
NEIGHBOUR = "condition.neighbour_ranks"


@dataclass(frozen=True)
class Samples:
    """The lab's runs, oldest first; every table has one row a run."""

    runs: tuple[Run, ...]
    cohorts: tuple[str, ...]
    outcomes: pd.DataFrame
    conditions: pd.DataFrame

    def places(self, *splits: str) -> list[int]:
        """The runs of these parts of the split."""
        return [place for place, run in enumerate(self.runs) if run.tags["split"] in splits]


def samples() -> Samples:
    """The runs of the lab's plan; those of neighbours count as conditions alone."""
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        load_lab_samples(store)
        runs = [run for run in all_runs(store) if "split" in run.tags]
        outcomes, conditions = summaries(store, runs), conditions_at_start(store, runs)
    return Samples(tuple(runs), tuple(map(cohort_key, runs)), outcomes, conditions)


def forecast(lab: Samples, seconds: Floats, conditions: pd.DataFrame, asked: Sequence[int]) -> Prediction:
    """Log seconds of the asked runs, consecutive ones, each from the runs before it."""
    log_quantiles = []
    for first in range(0, len(asked), REFIT_RUNS):
        block = asked[first : first + REFIT_RUNS]
        earlier = slice(0, block[0])
        model = CohortSpread().fit(lab.cohorts[earlier], seconds[earlier], conditions.iloc[earlier])
        for place in block:
            row = conditions.iloc[[place]]
            log_quantiles.append(np.log(model.predict([lab.cohorts[place]], row).values[0]))
            model.observe(lab.cohorts[place], float(seconds[place]), row)
    return Prediction(LEVELS, np.array(log_quantiles))


def naive(lab: Samples, seconds: Floats, asked: Sequence[int]) -> dict[str, Prediction]:
    """Log seconds of the asked runs by every baseline, with its cohort's past errors as its distribution."""
    forecasts: dict[str, list[Floats]] = {baseline.name: [] for baseline in BASELINES}
    for place in asked:
        earlier = np.array([seconds[other] for other in range(place) if lab.cohorts[other] == lab.cohorts[place]])
        for baseline in BASELINES:
            said = distribution(baseline.forecast(earlier), one_step_errors(baseline, earlier))
            forecasts[baseline.name].append(np.log(said.values[0]))
    return {name: Prediction(LEVELS, np.array(values)) for name, values in forecasts.items()}


def truth(lab: Samples, *, late: bool) -> pd.DataFrame:
    """Return what only an oracle knows: of each kind of fault its strength x the share of steps that it lasts.

    `late` includes faults that begin in the middle of the run. Strengths are shares of the kind's largest.
    """
    rows = [_injected(run.tags["injected"], late=late) for run in lab.runs]
    table = pd.DataFrame(rows).fillna(0.0)
    return (table / table.max()).assign(neighbour=lab.conditions[NEIGHBOUR].to_numpy())


def _injected(tag: str, *, late: bool) -> Mapping[str, float]:
    begin, end = FROM.search(tag), TO.search(tag)
    if tag == "none" or (begin and not late):
        return {"none": 1.0}
    kind, _, strength = tag.split(" ", maxsplit=1)[0].split(":")
    first, last = int(begin[1]) if begin else 0, int(end[1]) if end else STEPS
    share = (last - first) / STEPS
    return {kind: share, f"{kind}_strength": share * float(strength)}


def row(lab: Samples, outcome: str, asked: Sequence[int], split: str) -> Row:
    """Return what is reached on the asked runs, consecutive ones."""
    seconds = lab.outcomes[OUTCOMES[outcome]].to_numpy(np.float64)
    logs = np.log(seconds[list(asked)])
    by_baseline = naive(lab, seconds, asked)
    median = pinball_loss(by_baseline["always_median"], logs)

    def figures(said: Prediction) -> dict[str, float]:
        loss = pinball_loss(said, logs)
        covered = coverage(said, logs, low=0.05, high=0.95)
        return {"crps": 2 * loss, "crps_skill": skill(loss, median), "coverage_90": covered}

    others = {
        "without_conditions": forecast(lab, seconds, lab.conditions[[]], asked),
        "oracle_of_faults_before": forecast(lab, seconds, truth(lab, late=False), asked),
        "oracle_of_all_faults": forecast(lab, seconds, truth(lab, late=True), asked),
    }
    ours = figures(forecast(lab, seconds, lab.conditions[list(PREDICTIVE)], asked))
    low, high = ASKED_COVERAGE
    return Row(
        task=f"lab, before the run: {outcome}",
        split=split,
        rows=len(asked),
        figures=ours,
        asked=ASKED,
        holds=ours["crps_skill"] >= ASKED_SKILL and low <= ours["coverage_90"] <= high,
        baselines={name: figures(said) for name, said in (by_baseline | others).items()},
        note=f"one run is {1 / len(asked):.1%} of coverage; half of the faults begin after the run does",
    )


def rows() -> list[Row]:
    """The run's time, which is what is asked, and its median step."""
    lab = samples()
    return [row(lab, outcome, lab.places("test"), SPLIT) for outcome in OUTCOMES]
