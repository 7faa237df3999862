"""Comparison of a study of a real training with measuring everything: DDP of two ranks on this machine.

The configurations are batch, bucket size, threads and loader workers; the objective is seconds per sample. Truth is
the median of each configuration's rounds, measured without a neighbour. Every study has 15 runs of its own, half of
the studies run beside a neighbour who computes now and then, and its answer is judged by the truth. It takes about
half an hour (more beside Optuna, which takes part where it is installed) and wants an otherwise quiet machine. With
TUNER_LIVE_RESULTS naming a file, what is measured is kept there and not measured again; TUNER_LIVE_STUDIES chooses
studies by their seeds (0,1,2).
"""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.tuning_live.exhaustive import Truth, measure_all
from benchmarks.tuning_live.kept import Kept, Studied
from benchmarks.tuning_live.plan import Plan
from benchmarks.tuning_live.ranks import started
from benchmarks.tuning_live.studies import SMALLEST, has_neighbour, study_all

RESULTS = "TUNER_LIVE_RESULTS"  # a file of JSON lines
REGRET = 0.05
ASKED = 0.8  # of the studies within REGRET of the best
COLUMNS = ("quiet", "neighbour", "all", "regret", "worst", "a study")  # how many within REGRET; regret; wall time


def main() -> None:
    results_file = os.environ.get(RESULTS)
    live(Plan.from_environment(), Path(results_file) if results_file else None)


def live(plan: Plan, path: Path | None = None) -> dict[str, object]:
    """Measures everything, runs the studies, prints how they did; the figures, by name."""
    kept, load = Kept(path, plan.setup), os.getloadavg()[0]
    print(f"load of the machine before: {load:.2f}", flush=True)
    with started(plan.seconds) as ranks:
        truth = measure_all(plan, ranks.measure, kept)
        figures = tell_truth(plan, truth, sum(row.wall_seconds for row in kept.measured))
        studies = study_all(plan, ranks.measure, kept)
    print(f"{'tuner':<12}{'answer':<10}" + "".join(f"{name:>10}" for name in COLUMNS))
    for tuner, answer in dict.fromkeys((study.tuner, answer) for study in studies for answer in study.answers):
        figures |= tell_arm(truth, [study for study in studies if study.tuner == tuner], answer)
    figures |= {"studies": len(plan.seeds), "trials": plan.trials, "load_before": round(load, 2)}
    print(json.dumps(figures | {"machine": f"{os.cpu_count()} cores, {platform.machine()}"}))
    return figures


def tell_truth(plan: Plan, truth: Truth, seconds: float) -> dict[str, object]:
    """Prints what measuring everything found, in how long; its figures."""
    near, worst = len(truth.within(REGRET)), 1 + max(map(truth.regret, truth.repeats))
    [best] = [
        dict(configuration)
        for configuration in plan.space.configurations()
        if [plan.space.key(configuration)] == truth.best(1)
    ]
    runs = sum(len(repeats) for repeats in truth.repeats.values())
    print(f"{len(truth.repeats)} configurations, {runs} runs in {seconds:.0f} s; variability of one {truth.spread:.1%}")
    print(f"best {best}; {near} within {REGRET:.0%} of it; the worst takes {worst:.2f} times as long", flush=True)
    return {
        "configurations": len(truth.repeats),
        "near": near,
        "variability_ratio": round(truth.spread, 4),
        "exhaustive_seconds": round(seconds),
    }


def tell_arm(truth: Truth, studies: Sequence[Studied], answer: str) -> dict[str, object]:
    """Prints how one tuner did, whose studies these are, with one way to answer; the figures."""
    regrets = [truth.regret(study.answers[answer]) for study in studies]
    quiet = [regret for study, regret in zip(studies, regrets, strict=True) if not has_neighbour(study.seed)]
    loaded = [regret for study, regret in zip(studies, regrets, strict=True) if has_neighbour(study.seed)]
    tuner, share = studies[0].tuner, mean(regret <= REGRET for regret in regrets)
    took = f"{mean(study.wall_seconds for study in studies):.0f} s"
    cells = (*map(_near, (quiet, loaded, regrets)), f"{mean(regrets):.1%}", f"{max(regrets):.1%}", took)
    print(f"{tuner:<12}{answer:<10}" + "".join(f"{cell:>10}" for cell in cells), end="")
    is_asked = (tuner, answer) == ("service", SMALLEST)
    print(f"   asked {ASKED:.0%}: {'holds' if share >= ASKED else 'DOES NOT HOLD'}" if is_asked else "", flush=True)
    name = f"{tuner}_{answer}"
    return {f"{name}_within_ratio": round(share, 3), f"{name}_mean_regret": round(mean(regrets), 4)}


def _near(regrets: Sequence[float]) -> str:
    return f"{sum(regret <= REGRET for regret in regrets)} of {len(regrets)}"


if __name__ == "__main__":
    main()
