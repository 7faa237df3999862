"""The sample of solvers holds what its card says."""

from crosswind.data.samples.sparse_solvers import sparse_matrices, sparse_solves


def test_every_matrix_was_solved_by_some_variant() -> None:
    solved = sparse_solves().groupby(["kind", "seed"])["seconds"].min()
    assert solved.notna().all()
    assert set(solved.index) == set(zip(sparse_matrices()["kind"], sparse_matrices()["seed"], strict=True))


def test_a_row_has_seconds_or_a_reason_and_is_the_only_one_of_its_variant() -> None:
    solves = sparse_solves()
    assert (solves["seconds"].notna() == (solves["reason"] == "")).all()
    assert not solves.duplicated(["kind", "seed", "solver", "preconditioner"]).any()
    assert (solves["seconds"].dropna() > 0).all()


def test_methods_for_symmetric_matrices_ran_on_no_other() -> None:
    matrices = sparse_matrices().set_index(["kind", "seed"])
    rows = sparse_solves().set_index(["kind", "seed"])
    symmetric_only = rows[rows["solver"].isin(["cg", "minres"])]
    assert (matrices.loc[symmetric_only.index.unique(), "is_symmetric"] == 1).all()


def test_there_are_many_matrices_of_many_kinds() -> None:
    matrices = sparse_matrices()
    assert len(matrices) >= 500
    assert matrices["kind"].nunique() >= 35
    assert (matrices["kind"] == "composed").sum() >= 300
    assert matrices.drop(columns=["kind"]).notna().all(axis=None)


def test_features_cost_a_small_part_of_the_solve_that_they_choose() -> None:
    matrices = sparse_matrices()
    assert (matrices["feature_seconds"] / matrices["solve_seconds"]).median() < 0.2
    assert (matrices[["feature_seconds", "further_seconds", "solve_seconds"]] > 0).all(axis=None)
