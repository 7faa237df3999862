"""Suspects blamed and counters named, where it is known who and what slows runs down.

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
from crosswind.client.local import Local
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.effects import CounterColumn
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.counters.counters import ranked
from crosswind.models.interference.exposure import enough
from crosswind.models.interference.interference import exposures_of, ranking

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
        named = [candidate.name for candidate in met.candidates]
        blamed = {suspect.candidate.name for suspect in ranking(made.compared, met).suspects if suspect.is_blamed}
        ours.append(_score(blamed, len(named)))
        p, r = _pearson(met.shares.toarray(), made.compared.log_excess)
        pearson.append(_score({named[place] for place in np.flatnonzero((p < 0.05) & (r > 0))}, len(named)))
        q = scipy.stats.false_discovery_control(p)
        corrected.append(_score({named[place] for place in np.flatnonzero((q < 0.05) & (r > 0))}, len(named)))
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


def _score(blamed: set[str], tested: int) -> dict[str, float]:
    innocents = len(blamed - {AGGRESSOR})
    return {
        "trials_with_innocent_blamed": float(innocents > 0),
        "innocents_blamed": innocents / tested,
        "power": float(AGGRESSOR in blamed),
    }


def _counters() -> Row:
    rates: dict[str, list[dict[str, float]]] = {}
    for trial in range(TRIALS):
        made = counted(SEEDS["counters"] + trial)
        names = [
            CounterColumn("set", f"c{number}_total", "", "second", "", "") for number in range(made.counters.shape[1])
        ]
        table = {name: pd.Series(column) for name, column in zip(names, made.counters.T, strict=True)}
        mattering = {names.index(counter.shown) for counter in ranked(_runs(made.log_excess), table) if counter.matters}
        p, r = _pearson(made.counters, made.log_excess)
        q = scipy.stats.false_discovery_control(p)
        named = {
            "ours": mattering,
            "Pearson p < 0.05": set(np.flatnonzero(p < 0.05).tolist()),
            "Pearson, corrected": set(np.flatnonzero(q < 0.05).tolist()),
            "ten largest |r|": set(np.argsort(-np.abs(r))[:FIRST].tolist()),
        }
        for name, places in named.items():
            rates.setdefault(name, []).append(_rates(places))
    figures = {name: _means(trials) for name, trials in rates.items()}
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


def _rates(places: set[int]) -> dict[str, float]:
    false = sum(place >= REAL for place in places)
    return {"false_discovery_rate": false / max(len(places), 1), "power": (len(places) - false) / REAL}


def _runs(log_excess: Floats) -> Outcomes:
    hour = 3_600_000_000_000
    made = [
        Run(f"r{number}", "bert", "s", RunState.COMPLETED, started_ns=number * hour, ended_ns=number * hour + hour // 2)
        for number in range(len(log_excess))
    ]
    return Outcomes("s", "bert", tuple(made), log_excess, np.zeros(len(made), np.int64), len(made))


def _lab() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, Local(Store.open(Path(folder))) as client:
        load_lab_samples(client.store)
        return [_lab_neighbours(client), _lab_counters(client)]


def _lab_neighbours(client: Local) -> Row:
    """All three workloads were put beside others; image-classifier two times of three."""
    ranked_suspects = client.interference()
    said = [
        f"{suspect.candidate.name} beside {suspect.exposed_runs} runs: {suspect.slowdown_ratio:.2f}x "
        f"[{suspect.slowdown_low_ratio:.2f} .. {suspect.slowdown_high_ratio:.2f}], q {suspect.q:.2g}"
        for suspect in ranked_suspects.suspects
    ]
    return Row(
        task="interference in the lab, workloads beside",
        split="all runs; nothing is learned",
        rows=ranked_suspects.compared_runs,
        figures={"workloads_blamed": len(ranked_suspects.blamed) / max(len(ranked_suspects.suspects), 1)},
        asked="jobs that really were beside runs are found where there are enough",
        holds=bool(ranked_suspects.blamed),
        note="; ".join(said),
    )


def _lab_counters(client: Local) -> Row:
    effects = client.counters()
    table = ", ".join(f"{counter.shown.name} {counter.rho:+.2f}" for counter in effects.mattering[:FIRST])
    follows = sum(counter.follows_duration for counter in effects.counters) / max(len(effects.counters), 1)
    return Row(
        task="counters in the lab",
        split="all runs; nothing is learned",
        rows=effects.compared_runs,
        figures={"mattering": len(effects.mattering) / max(len(effects.counters), 1), "following_duration": follows},
        asked="which faults showed is read off the names",
        holds=bool(effects.mattering),
        note=f"surest: {table}",
    )


def _pearson(columns: Floats, outcome: Floats) -> tuple[Floats, Floats]:
    correlation = scipy.stats.pearsonr(columns, outcome[:, None], axis=0)
    return np.nan_to_num(correlation.pvalue, nan=1.0), np.nan_to_num(correlation.statistic)


def _means(trials: list[dict[str, float]]) -> Mapping[str, float]:
    return {name: float(np.mean([trial[name] for trial in trials])) for name in trials[0]}
