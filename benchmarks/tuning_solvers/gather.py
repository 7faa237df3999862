"""Gathers measured rows and the matrices' features into the sample's two Parquet files.

    python -m benchmarks.tuning_solvers.gather data/samples/solvers FOLDER...

What the sample has already stays and comes first. Rows of variants that are not compared any more, or have no theory
for the matrix, are left out; so is a matrix that no variant solved.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from benchmarks.tuning_solvers.kinds import matrix_of
from benchmarks.tuning_solvers.matrix_features import matrix_features
from benchmarks.tuning_solvers.measure import applicable

COMPRESSION = {"compression": "zstd", "compression_level": 19}


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
            matrices.append({"kind": kind, "seed": seed, **size, **matrix_features(matrix)})
    asked.to.mkdir(parents=True, exist_ok=True)
    pd.concat(solves, ignore_index=True).to_parquet(asked.to / "solves.parquet", index=False, **COMPRESSION)
    pd.DataFrame(matrices).to_parquet(asked.to / "matrices.parquet", index=False, **COMPRESSION)
    print(f"{len(matrices)} matrices of {pd.DataFrame(matrices)['kind'].nunique()} kinds")


def _there(sample: Path) -> pd.DataFrame:
    path = sample / "solves.parquet"
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


def _measured(folder: Path) -> pd.DataFrame:
    return pd.DataFrame(map(json.loads, (folder / "solves.jsonl").read_text().splitlines()))


if __name__ == "__main__":
    main()
