"""Measures every variant on every matrix and writes a row for each.

    OMP_NUM_THREADS=1 python -m benchmarks.tuning_solvers.measure FOLDER --matrices 10 --minutes 25

A file of rows grows as they come; what is there already is not measured again.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import numpy as np

from benchmarks.tuning_solvers.grids import Matrix
from benchmarks.tuning_solvers.kinds import KINDS, matrix_of
from benchmarks.tuning_solvers.stopwatch import Limits, timed
from benchmarks.tuning_solvers.variants import FOR_SYMMETRIC, VARIANTS, Vector, solver_of

LIMIT_SECONDS = 1.0
LIMIT_TIMES_BEST = 4
LIMIT_LEAST_SECONDS = 0.02
REPEAT_TIMES_BEST = 1.5
SCOUTS = 5
SYMMETRIC = 1e-10


def main() -> None:
    """Walks through the kinds again and again, so that a run cut short has all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--matrices", type=int, default=10, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first one: to share the work")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help="only these")
    parser.add_argument("--minutes", type=float, default=25)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    until = monotonic() + 60 * asked.minutes
    path = asked.folder / "solves.jsonl"
    there = {(row["kind"], row["seed"]) for row in map(json.loads, path.open())} if path.exists() else set()
    warm_up()
    for kind, seed in [
        (kind, seed) for seed in range(asked.first, asked.first + asked.matrices) for kind in asked.kinds
    ]:
        if monotonic() > until:
            print(f"the time is over at {kind} {seed}")
            break
        if (kind, seed) not in there:
            rows = [{"kind": kind, "seed": seed, **row} for row in solves(matrix_of(kind, seed), seed)]
            with path.open("a") as out:
                out.write("".join(json.dumps(row) + "\n" for row in rows))


def warm_up() -> None:
    """Each variant once in this process: its children then need not import or bind anything."""
    matrix = matrix_of("heat_step", 10**6)
    for variant in VARIANTS:
        solver_of(variant)(matrix, right_side(matrix, 0))


def right_side(matrix: Matrix, seed: int) -> Vector:
    """Random, so that no part of the spectrum is spared."""
    return np.random.default_rng(seed).normal(size=matrix.shape[0])


def solves(matrix: Matrix, seed: int) -> Iterator[dict[str, object]]:
    """Each variant's outcome on a matrix; the limit follows the best that is known so far.

    Nothing when no scout solves it in half of the longest limit: it would cost too much to know what is best there.
    """
    right, variants = right_side(matrix, seed), applicable(matrix)
    best = scouted(matrix, right, variants[:SCOUTS])
    for solver, preconditioner in variants if best else ():
        limit = min(LIMIT_SECONDS, max(LIMIT_LEAST_SECONDS, LIMIT_TIMES_BEST * best))
        outcome = timed(solver_of((solver, preconditioner)), matrix, right, Limits(limit, REPEAT_TIMES_BEST * best))
        best = min(best, outcome.seconds or best)
        variant = {"solver": solver, "preconditioner": preconditioner}
        yield {**variant, "seconds": outcome.seconds, "reason": outcome.reason, "limit_seconds": limit}


def applicable(matrix: Matrix) -> list[tuple[str, str]]:
    """The variants that have a theory for this matrix."""
    is_symmetric = abs(matrix - matrix.T).max() <= SYMMETRIC * abs(matrix).max()
    return [variant for variant in VARIANTS if is_symmetric or variant[0] not in FOR_SYMMETRIC]


def scouted(matrix: Matrix, right: Vector, variants: list[tuple[str, str]]) -> float:
    """Return how long the quickest of some variants takes, without waiting for the slow ones; 0 if none solves it."""
    for limit in (LIMIT_SECONDS / 32, LIMIT_SECONDS / 8, LIMIT_SECONDS / 2):
        times = [timed(solver_of(variant), matrix, right, Limits(limit, 0)).seconds for variant in variants]
        if solved := [seconds for seconds in times if seconds is not None]:
            return min(solved)
    return 0.0


if __name__ == "__main__":
    main()
