"""Solvers and preconditioners measured on generated sparse matrices; data/samples/solvers/README.md says how."""

from importlib.resources import as_file, files

import pandas as pd


def sparse_solves() -> pd.DataFrame:
    """One row a matrix and variant: kind, seed, solver, preconditioner, seconds (NaN: none), reason, limit_seconds."""
    return _table("solves")


def sparse_matrices() -> pd.DataFrame:
    """One row a matrix: kind, seed, rows, nonzeros, and its features by their names."""
    return _table("matrices")


def _table(name: str) -> pd.DataFrame:
    with as_file(files("crosswind.data.samples") / "solvers" / f"{name}.parquet") as path:
        return pd.read_parquet(path)
