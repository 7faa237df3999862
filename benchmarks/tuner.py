"""How long one suggestion takes, beside random search: over a listed space and one too big to list."""

import json
import platform
import statistics
import time

from crosswind.data.trial import Trial, TrialState
from crosswind.models.tuner import TUNERS, PortfolioTuner, Space, Tuner

KNOWN = (10, 40, 160)  # trials done before
ROUNDS = 7
LARGE = Space.from_json({name: {"kind": "int", "low": 0, "high": 35} for name in ("a", "b", "c")})
LARGE_KNOWN = (100, 1000)
SPACES = {
    "192 listed": Space.from_json(
        {
            "micro_batch": {"kind": "ordinal", "values": [2, 4, 8, 16]},
            "accumulation_steps": {"kind": "ordinal", "values": [1, 4]},
            "bucket_cap_mb": {"kind": "ordinal", "values": [0.1, 0.5, 4.0]},
            "threads": {"kind": "ordinal", "values": [1, 2]},
            "gradient_as_bucket_view": {"kind": "boolean"},
            "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
        }
    ),
    "real-valued": Space.from_json(
        {
            "bucket_mb": {"kind": "float", "low": 0.5, "high": 64, "log": True},
            "workers": {"kind": "int", "low": 0, "high": 16},
            "batch": {"kind": "int", "low": 1, "high": 512, "log": True},
            "fused": {"kind": "boolean"},
        }
    ),
}


def seconds_to_suggest(tuner: Tuner, space: Space, known: int) -> float:
    """Median seconds of one suggestion with so many trials known."""
    trials = [
        Trial(configuration, TrialState.DONE, 1 + float(space.coordinates([configuration]).sum()))
        for configuration in space.random(known, seed=1)
    ]
    tuner.observe(trials)
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        tuner.suggest(1)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def large_listed() -> dict[str, float]:
    """Milliseconds, median and longest, of one suggestion of the portfolio among 46,656 listed configurations."""
    figures: dict[str, float] = {}
    for known in LARGE_KNOWN:
        tuner = PortfolioTuner(LARGE, 0)
        for place, configuration in enumerate(LARGE.random(known, seed=1)):
            objective = 1 + float(LARGE.coordinates([configuration]).sum())
            tuner.observe([Trial(configuration, TrialState.DONE, objective, str(place))])
        taken = []
        for _ in range(3 * ROUNDS):
            begin = time.perf_counter()
            [chosen] = tuner.suggest(1)
            taken.append(1e3 * (time.perf_counter() - begin))
            tuner.observe([Trial(chosen, TrialState.DONE, 1 + float(LARGE.coordinates([chosen]).sum()))])
        figures |= {f"large_{known}_median_ms": round(statistics.median(taken), 1)}
        figures |= {f"large_{known}_longest_ms": round(max(taken), 1)}
    return figures


def main() -> None:
    figures: dict[str, object] = {}
    print(f"{'space':<14} {'tuner':<18}" + "".join(f"{f'{known} known':>12}" for known in KNOWN))
    for title, space in SPACES.items():
        for make in TUNERS:
            row = {known: seconds_to_suggest(make(space, 0), space, known) for known in KNOWN}
            print(f"{title:<14} {make.name:<18}" + "".join(f"{each * 1e3:9.1f} ms" for each in row.values()))
            name = title.replace(" ", "_").replace("-", "_")
            figures |= {f"{name}_{make.name}_{known}_ms": round(each * 1e3, 2) for known, each in row.items()}
    large = large_listed()
    print(", ".join(f"{name} {value}" for name, value in large.items()))
    figures |= large
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(json.dumps(figures | {"rounds": ROUNDS, "machine": machine}))


if __name__ == "__main__":
    main()
