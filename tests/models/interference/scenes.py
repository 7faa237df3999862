"""Runs, neighbours and counters made by a known law, so that it is known who slows runs down and what shows it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.models.association.outcomes import Outcomes

RUN_NS = 3_600_000_000_000
NODES, NODES_A_RUN = 16, 4
NOISE = 0.05  # of log seconds
TABLE = ("node", "begin_ns", "end_ns", "run_id", "job_id", "user", "workload", "job")


@dataclass(frozen=True)
class Scene:
    """Compared runs and who was present; the first user is the aggressor, if there is one."""

    compared: Outcomes
    present: pd.DataFrame


def drift(random: np.random.Generator, runs: int) -> Floats:
    """Of log seconds: a season, a walk and an upgrade at one time, each as large as any neighbour's effect."""
    time = np.arange(runs) / runs
    season = 0.1 * np.sin(2 * np.pi * (time * random.uniform(1, 3) + random.random()))
    return season + np.cumsum(random.normal(0, 0.005, runs)) + 0.1 * (time > random.uniform(0.2, 0.8))


def scene(seed: int, *, runs: int = 100, users: int = 300, effect: float = 0.0, together: float = 0.2) -> Scene:
    """Runs of an hour, one after the other; each user is busy for a part of that time, in jobs of 1 to 5 hours.

    With an effect, user 0 is beside a share `together` of the runs, on all their nodes, and adds that to log seconds.
    """
    random = np.random.default_rng(seed)
    nodes = np.array([random.choice(NODES, NODES_A_RUN, replace=False) for _ in range(runs)])
    met = random.random(runs) < together if effect else np.zeros(runs, bool)
    log = drift(random, runs) + random.normal(0, NOISE, runs) + effect * met
    begins = 2 * RUN_NS * np.arange(runs)
    made = [
        Run(
            f"r{number}",
            "bert",
            "s",
            RunState.COMPLETED,
            nodes=tuple(f"n{node}" for node in nodes[number]),
            started_ns=int(begins[number]),
            ended_ns=int(begins[number] + RUN_NS * np.exp(log[number])),
        )
        for number in range(runs)
    ]
    rows = [row for user in range(1, users) for row in _jobs(random, user, 2 * RUN_NS * runs)]
    rows += [
        (f"n{node}", begins[number], begins[number] + 2 * RUN_NS, 0)
        for number in np.flatnonzero(met)
        for node in nodes[number]
    ]
    compared = Outcomes("s", "bert", tuple(made), log - np.median(log), np.zeros(runs, np.int64), runs)
    return Scene(compared, _table(rows))


def _jobs(random: np.random.Generator, user: int, length_ns: int) -> list[tuple[str, int, int, int]]:
    """A user's jobs: 20 to 60 in a fifth to all of the time, on one to six nodes."""
    share = random.uniform(0.2, 1.0)
    first = random.uniform(0, 1 - share)
    starts = (first + share * random.random(random.integers(20, 60))) * length_ns
    return [
        (f"n{node}", int(start), int(start + random.uniform(1, 5) * RUN_NS), user)
        for start in starts
        for node in random.choice(NODES, random.integers(1, 7), replace=False)
    ]


def _table(rows: list[tuple[str, int, int, int]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["node", "begin_ns", "end_ns", "number"])
    table = table.assign(user="u-" + table["number"].astype(str), workload=None, run_id=None, job_id=None, job=None)
    return table[list(TABLE)].astype({"workload": object, "run_id": object, "job_id": object, "job": object})


@dataclass(frozen=True)
class Counted:
    """Log excess (n_runs,) and counters (n_runs, n_counters), of which the first ones are real causes."""

    log_excess: Floats
    counters: Floats


def counted(seed: int, *, runs: int = 100, noise: int = 200, real: int = 3, effect: float = 0.05) -> Counted:
    """Noise counters with trends of their own beside causes, each adding `effect` by deviation to the excess."""
    random = np.random.default_rng(seed)
    causes = random.lognormal(0, 1, (runs, real))
    standard = (np.log(causes) - np.log(causes).mean(axis=0)) / np.log(causes).std(axis=0)
    trends = np.column_stack([drift(random, runs) for _ in range(noise)])
    idle = np.exp(trends / trends.std(axis=0) * random.uniform(0, 2, noise) + random.normal(0, 1, (runs, noise)))
    log = drift(random, runs) + random.normal(0, NOISE, runs) + effect * standard.sum(axis=1)
    return Counted(log - np.median(log), np.column_stack([causes, idle]))
