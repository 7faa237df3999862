"""Gathers measured rows and the matrices' features into the sample's two Parquet files.

    python -m benchmarks.tuning_solvers.gather data/samples/solvers FOLDER...

Beside each matrix' features stand the processor seconds that they took here, and those of its best variant, timed here
as well: the least of REPEATS each. What the sample has already stays and comes first. Rows of variants that are not
compared any more, or have no theory for the matrix, are left out; so is a matrix that no variant solved.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import TypeVar

import numpy as np
import pandas as pd

from benchmarks.tuning_solvers.kinds import matrix_of
from benchmarks.tuning_solvers.matrix_features import further_features, matrix_features
from benchmarks.tuning_solvers.matrix_rows import Matrix, Vector
from benchmarks.tuning_solvers.measure import applicable, right_side
from benchmarks.tuning_solvers.variants import solver_of

T = TypeVar("T")

COMPRESSION = {"compression": "zstd", "compression_level": 19}
REPEATS = 3


def main() -> None:
    """Reads what `measure` wrote."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("to", type=Path)
    parser.add_argument("folders", type=Path, nargs="*", help="none: compute the features again")
    asked = parser.parse_args()
    measured = pd.concat([_there(asked.to), *map(_measured, asked.folders)], ignore_index=True)
    measured = measured.drop_duplicates(["kind", "seed", "solver", "preconditioner"])
    solves, matrices = [], []
    for (kind, seed), rows in measured.groupby(["kind", "seed"], sort=True):
        matrix = matrix_of(kind, seed)
        kept = rows[[variant in applicable(matrix) for variant in zip(rows.solver, rows.preconditioner, strict=True)]]
        if kept["seconds"].notna().any():
            solves.append(kept)
            size = {"rows": matrix.shape[0], "nonzeros": matrix.nnz}
            best = kept.loc[kept["seconds"].idxmin()]
            solve = solver_of((str(best["solver"]), str(best["preconditioner"])))
            matrices.append({"kind": kind, "seed": seed, **size, **_described(matrix, solve, seed)})
    asked.to.mkdir(parents=True, exist_ok=True)
    pd.concat(solves, ignore_index=True).to_parquet(asked.to / "solves.parquet", index=False, **COMPRESSION)
    pd.DataFrame(matrices).to_parquet(asked.to / "matrices.parquet", index=False, **COMPRESSION)
    print(f"{len(matrices)} matrices of {pd.DataFrame(matrices)['kind'].nunique()} kinds")


def _described(matrix: Matrix, solve: Callable[[Matrix, Vector], Vector], seed: int) -> dict[str, float]:
    """The features and what they cost, by name."""
    features, seconds = _timed(lambda: matrix_features(matrix))
    further, further_seconds = _timed(lambda: further_features(matrix, features))
    right = right_side(matrix, seed)
    with np.errstate(all="ignore"):
        _, solve_seconds = _timed(lambda: solve(matrix, right))
    cost = {"feature_seconds": seconds, "further_seconds": further_seconds, "solve_seconds": solve_seconds}
    return {**further, **cost}


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of the work and its processor seconds."""
    seconds = []
    for _ in range(REPEATS):
        before = thread_time()
        result = work()
        seconds.append(thread_time() - before)
    return result, min(seconds)


def _there(sample: Path) -> pd.DataFrame:
    path = sample / "solves.parquet"
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


def _measured(folder: Path) -> pd.DataFrame:
    return pd.DataFrame(map(json.loads, (folder / "solves.jsonl").read_text().splitlines()))


if __name__ == "__main__":
    main()
