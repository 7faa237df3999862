"""Solvers and preconditioners measured on generated sparse matrices; data/samples/solvers/README.md says how."""

import pandas as pd

from crosswind.data.samples import sample_table


def sparse_solves() -> pd.DataFrame:
    """One row a matrix and variant: kind, seed, solver, preconditioner, seconds (NaN: none), reason, limit_seconds."""
    return sample_table("solvers/solves")


def sparse_matrices() -> pd.DataFrame:
    """One row a matrix: kind, seed, rows, nonzeros, and its features by their names."""
    return sample_table("solvers/matrices")
