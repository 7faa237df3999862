"""Shares of neighbours that each run had beside it."""

import numpy as np
import pandas as pd
import scipy.stats

from crosswind.data.schema.answers.effects import Neighbour, NeighbourKind, NeighbourScope
from crosswind.models.interference.dose import dose_response
from crosswind.models.interference.exposure import enough, exposures


def met(*rows: tuple[int, int, float]) -> pd.DataFrame:
    types = {"run": "int64", "presence": "int64", "share": "float64"}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def whose(users: list[str | None]) -> pd.DataFrame:
    nobody = pd.Series([None] * len(users), dtype=object)
    return pd.DataFrame({"user": pd.Series(users, dtype=object), "workload": nobody, "job": nobody})


def test_jobs_of_one_user_add_up_and_little_is_nothing() -> None:
    exposed = exposures(
        met((0, 0, 0.2), (0, 1, 0.3), (1, 2, 0.5), (2, 0, 0.01)), whose(["a", "a", "b"]), 3, NeighbourScope.NODE
    )
    assert exposed.candidates == (
        Neighbour(NeighbourKind.USER, NeighbourScope.NODE, "a"),
        Neighbour(NeighbourKind.USER, NeighbourScope.NODE, "b"),
    )
    assert exposed.shares.toarray().tolist() == [[0.5, 0.0], [0.0, 0.5], [0.0, 0.0]]


def test_candidates_are_those_beside_enough_runs_and_not_beside_enough_others() -> None:
    rare, usual, always = ([(run, place, 0.5) for run in range(count)] for place, count in enumerate((4, 5, 9)))
    exposed = enough(
        exposures(met(*rare, *usual, *always), whose(["rare", "usual", "always"]), 12, NeighbourScope.NODE)
    )
    assert [candidate.name for candidate in exposed.candidates] == ["usual"]


def test_of_very_many_candidates_those_beside_most_runs_are_tested() -> None:
    rows = [(run, place, 0.5) for place in range(450) for run in range(6 if place < 400 else 5)]
    exposed = enough(exposures(met(*rows), whose([f"u{place:03d}" for place in range(450)]), 12, NeighbourScope.NODE))
    assert [candidate.name for candidate in exposed.candidates] == [f"u{place:03d}" for place in range(400)]


def test_sparse_ranks_are_those_of_whole_columns() -> None:
    random = np.random.default_rng(0)
    rows = [
        (run, place, round(random.random(), 1)) for run in range(30) for place in range(70) if random.random() < 0.3
    ]
    exposed = exposures(met(*rows), whose([f"u{place:02d}" for place in range(70)]), 30, NeighbourScope.NODE)
    chunks = list(exposed.chunks())
    ranks, doses = (np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True))
    whole = exposed.shares.toarray()
    assert len(chunks) == 2
    assert np.array_equal(ranks, scipy.stats.rankdata(whole, axis=0))
    assert np.array_equal(doses, whole > 0)


def test_more_of_a_neighbour_and_more_delay_is_a_dose_response() -> None:
    random = np.random.default_rng(1)
    share = np.where(np.arange(60) < 30, 0.0, np.linspace(0.1, 1.0, 60))
    rising = dose_response(share, 0.2 * share + random.normal(0, 0.02, 60))
    assert rising is not None
    assert rising.is_rising
    assert 1.1 < rising.low_ratio < rising.middle_ratio < rising.high_ratio < 1.22
    flat = dose_response(share, 0.1 * (share > 0) + random.normal(0, 0.02, 60))
    assert flat is not None
    assert not flat.is_rising


def test_without_terciles_there_is_no_dose_response() -> None:
    excess = np.random.default_rng(2).normal(0, 1, 40)
    assert dose_response(np.where(np.arange(40) < 8, np.linspace(0.1, 1, 40), 0.0), excess) is None
    assert dose_response(np.where(np.arange(40) < 20, 1.0, 0.0), excess) is None
