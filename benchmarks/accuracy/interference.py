"""Who is blamed, and which counters are named, where it is known who and what slows runs down.

Simulated (tests/models/interference/scenes.py): 100 runs among 300 users who do nothing, with drift; the same with one
more who is beside 20 % of the runs and makes them slower; 200 counters that say nothing, with trends of their own, and
three that do. Nothing was chosen on these seeds. Then the lab's runs (data/samples/lab), beside which real jobs were
put.

Baselines: Pearson's r of presence or counter with the run's time, p < 0.05 for each alone, and with Benjamini-Hochberg;
and the ten largest |r|, as one picks by eye from the panels of a dashboard.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats
from tests.models.interference.scenes import counted, scene

from benchmarks.accuracy.row import Row
from crosswind.data.prediction import Floats
from crosswind.data.run import Run, RunState
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.store import Store
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.counters.counters import counters, ranked
from crosswind.models.counters.rates import Shown
from crosswind.models.interference.exposure import enough
from crosswind.models.interference.interference import exposures_of, interference, ranking

TRIALS = int(os.environ.get("TRIALS", "200"))
SEEDS = {"null": 11_000_000, "aggressor": 12_000_000, "weak": 13_000_000, "counters": 14_000_000}
AGGRESSOR = "u-0"
REAL = 3
FIRST = 10


def rows() -> list[Row]:
    return [
        _neighbours("null", 0.0),
        _neighbours("aggressor", 0.1),
        _neighbours("weak", 0.05),
        _counters(),
        *_lab(),
    ]


def _neighbours(kind: str, effect: float) -> Row:
    ours, pearson, corrected = [], [], []
    for trial in range(TRIALS):
        made = scene(SEEDS[kind] + trial, effect=effect)
        met = enough(exposures_of(made.compared, made.present))
        named = [each.name for each in met.candidates]
        blamed = {each.candidate.name for each in ranking(made.compared, met).suspects if each.is_blamed}
        ours.append(_told(blamed, len(named)))
        p, r = _pearson(met.shares.toarray(), made.compared.log_excess)
        pearson.append(_told({named[place] for place in np.flatnonzero((p < 0.05) & (r > 0))}, len(named)))
        q = scipy.stats.false_discovery_control(p)
        corrected.append(_told({named[place] for place in np.flatnonzero((q < 0.05) & (r > 0))}, len(named)))
    figures = _means(ours)
    reached = figures["trials_with_innocent_blamed"] <= 0.05 and (effect < 0.1 or figures["power"] >= 0.8)
    return Row(
        task=f"interference {kind}, aggressor +{effect:.0%}" if effect else "interference, nobody does anything",
        split=f"{TRIALS} simulated trials of 100 runs, 300 users, drift, 5 % noise",
        rows=TRIALS,
        figures=figures if effect else {name: value for name, value in figures.items() if name != "power"},
        asked="an innocent blamed in <= 5 % of trials" + (", power >= 80 %" if effect >= 0.1 else ""),
        holds=reached,
        baselines={"Pearson p < 0.05": _means(pearson), "Pearson, corrected": _means(corrected)},
    )


def _told(blamed: set[str], tested: int) -> dict[str, float]:
    innocents = len(blamed - {AGGRESSOR})
    return {
        "trials_with_innocent_blamed": float(innocents > 0),
        "innocents_blamed": innocents / tested,
        "power": float(AGGRESSOR in blamed),
    }


def _counters() -> Row:
    told: dict[str, list[dict[str, float]]] = {}
    for trial in range(TRIALS):
        made = counted(SEEDS["counters"] + trial)
        names = [Shown("set", f"c{number}_total", "", "second", "", "") for number in range(made.counters.shape[1])]
        table = {name: pd.Series(column) for name, column in zip(names, made.counters.T, strict=True)}
        found = {names.index(each.shown) for each in ranked(_runs(made.log_excess), table) if each.matters}
        p, r = _pearson(made.counters, made.log_excess)
        q = scipy.stats.false_discovery_control(p)
        named = {
            "ours": found,
            "Pearson p < 0.05": set(np.flatnonzero(p < 0.05).tolist()),
            "Pearson, corrected": set(np.flatnonzero(q < 0.05).tolist()),
            "ten largest |r|": set(np.argsort(-np.abs(r))[:FIRST].tolist()),
        }
        for name, places in named.items():
            told.setdefault(name, []).append(_rates(places))
    figures = {name: _means(each) for name, each in told.items()}
    ours = figures.pop("ours")
    return Row(
        task="counters, 3 real among 200 with trends",
        split=f"{TRIALS} simulated trials of 100 runs; a real one adds 5 % by standard deviation, 5 % noise",
        rows=TRIALS,
        figures=ours,
        asked="false discoveries <= 5 %, power >= 80 %",
        holds=ours["false_discovery_rate"] <= 0.05 and ours["power"] >= 0.8,
        baselines=figures,
    )


def _rates(found: set[int]) -> dict[str, float]:
    false = sum(place >= REAL for place in found)
    return {"false_discovery_rate": false / max(len(found), 1), "power": (len(found) - false) / REAL}


def _runs(log_excess: Floats) -> Outcomes:
    hour = 3_600_000_000_000
    made = [
        Run(f"r{number}", "bert", "s", RunState.COMPLETED, started_ns=number * hour, ended_ns=number * hour + hour // 2)
        for number in range(len(log_excess))
    ]
    return Outcomes("s", "bert", tuple(made), log_excess, np.zeros(len(made), np.int64), len(made))


def _lab() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        load_lab_samples(store)
        return [_lab_neighbours(store), _lab_counters(store)]


def _lab_neighbours(store: Store) -> Row:
    """All three workloads were put beside others; image-classifier two times of three."""
    found = interference(store)
    said = [
        f"{each.candidate.name} beside {each.exposed_runs} runs: {each.slowdown_ratio:.2f}x "
        f"[{each.slowdown_low_ratio:.2f} .. {each.slowdown_high_ratio:.2f}], q {each.q:.2g}"
        for each in found.suspects
    ]
    return Row(
        task="interference in the lab, workloads beside",
        split="all runs; nothing is learned",
        rows=found.compared_runs,
        figures={"workloads_blamed": len(found.blamed) / max(len(found.suspects), 1)},
        asked="jobs that really were beside runs are found where there are enough",
        holds=bool(found.blamed),
        note="; ".join(said),
    )


def _lab_counters(store: Store) -> Row:
    found = counters(store)
    table = ", ".join(f"{each.shown.name} {each.rho:+.2f}" for each in found.mattering[:FIRST])
    follows = sum(each.follows_duration for each in found.counters) / max(len(found.counters), 1)
    return Row(
        task="counters in the lab",
        split="all runs; nothing is learned",
        rows=found.compared_runs,
        figures={"mattering": len(found.mattering) / max(len(found.counters), 1), "following_duration": follows},
        asked="which faults showed is read off the names",
        holds=bool(found.mattering),
        note=f"surest: {table}",
    )


def _pearson(columns: Floats, outcome: Floats) -> tuple[Floats, Floats]:
    told = scipy.stats.pearsonr(columns, outcome[:, None], axis=0)
    return np.nan_to_num(told.pvalue, nan=1.0), np.nan_to_num(told.statistic)


def _means(told: list[dict[str, float]]) -> Mapping[str, float]:
    return {name: float(np.mean([each[name] for each in told])) for name in told[0]}
