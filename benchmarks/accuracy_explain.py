"""Rates of injected causes named and of undisturbed runs called slow: lab, fresh lab runs, repeated demos.

FRESH=0, FRESH_SEED and FRESH_STORE are given in benchmarks/accuracy/fresh_explain.py; ROUNDS=0 leaves the demos out.

Every round of the demo records its runs again in a store of its own (6 disturbed, 8 undisturbed, in random order) and
explains each against the others of its round. Nothing is fitted or tuned on these runs. The baseline is what a step
time alone can say: a run is called slow above 1.25x the round's median, and the cause is guessed.
"""

import json
import os
import platform
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy.table import tell
from crosswind.cli.verbs.demo.loop import DemoLoop, Explained
from crosswind.cli.verbs.demo.plan import STRENGTHS, planned_runs
from crosswind.cli.verbs.demo.summary import score_line
from crosswind.data.store.store import Store
from crosswind.settings import Settings

ROUNDS = int(os.environ.get("ROUNDS", "2"))


def main() -> None:
    tell(("lab_explain", "fresh_explain"))
    if ROUNDS:
        tell_demos()


def tell_demos() -> None:
    explained: list[Explained] = []
    slower: list[bool] = []
    for seed in range(ROUNDS):
        round_runs = one_round(seed)
        times = [(run.explanation.measured_seconds or 0.0) / (run.explanation.steps or 1) for run in round_runs]
        slower += [time > 1.25 * float(np.median(times)) for time in times]
        explained += round_runs
        print(f"round {seed}: {score_line(round_runs)}", flush=True)
    named: Counter[tuple[str, bool]] = Counter()
    for run in explained:
        if run.plan.fault:
            named[run.plan.fault.kind, run.explanation.cause == run.plan.truth] += 1
    print(f"{'injected':<16} {'named':>6} {'of':>4}")
    for kind in STRENGTHS:
        print(f"{kind:<16} {named[kind, True]:>6} {named[kind, True] + named[kind, False]:>4}")
    print(json.dumps(figures(explained, slower)))


def one_round(seed: int) -> list[Explained]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = replace(Settings.from_environment(), home=home, spool=home / "spool", database=None)
        with Store.open(home) as store:
            loop = DemoLoop(settings, store, planned_runs(seed), seed=seed, trials=0)
            return list(loop.run(time.monotonic()).explained)


def figures(explained: list[Explained], slower: list[bool]) -> dict[str, object]:
    disturbed = [run.plan.truth is not None for run in explained]
    pairs = list(zip(disturbed, slower, strict=True))
    return {
        "rounds": ROUNDS,
        "disturbed": sum(disturbed),
        "cause_named_ratio": ratio([run.explanation.cause == run.plan.truth for run in explained if run.plan.truth]),
        "undisturbed": len(disturbed) - sum(disturbed),
        "false_alarm_ratio": ratio([not run.is_right for run in explained if run.plan.truth is None]),
        "baseline_detected_ratio": ratio([slow for is_disturbed, slow in pairs if is_disturbed]),
        "baseline_named_ratio": ratio([slow for is_disturbed, slow in pairs if is_disturbed]) / len(STRENGTHS),
        "baseline_false_alarm_ratio": ratio([slow for is_disturbed, slow in pairs if not is_disturbed]),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
    }


def ratio(truths: list[bool]) -> float:
    return round(sum(truths) / len(truths), 3) if truths else float("nan")


if __name__ == "__main__":
    main()
