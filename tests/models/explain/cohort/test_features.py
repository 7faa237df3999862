"""Features come back from their bytes as they were."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.models.explain.drawn_segments import ALONE, own_of

from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.features import Features, unpacked
from crosswind.models.explain.cohort.own_segments import condensed
from crosswind.models.explain.cohort.segments import Segments, segments_of


def test_a_condensed_run_has_the_means_of_its_segments(drawn: Callable[..., Segments]) -> None:
    own = own_of(replace(drawn(1), culprits=np.arange(60.0) % 3, work={0: 0.03, 1: 0.04}))
    whole, few = segments_of(own, ALONE), segments_of(condensed(own), ALONE)
    assert few.values.shape == (3, len(COLUMNS))
    assert few.means == pytest.approx(whole.means, rel=1e-12, nan_ok=True)
    assert few.contrasts() == pytest.approx(whole.contrasts(), nan_ok=True)


def test_every_number_comes_back_bit_by_bit(drawn: Callable[..., Segments]) -> None:
    own = condensed(own_of(replace(drawn(2), work={0: 0.1 + 0.2, 3: 1e-300})))
    features = Features(replace(own, samples={"clock": float("nan"), "traffic": 1 / 3}), {0: "n0", 3: "nöd"})
    again = unpacked(features.packed())
    np.testing.assert_equal(vars(again.segments), vars(features.segments))
    assert again.nodes == features.nodes
    for name in ("values", "of_ranks"):
        assert getattr(again.segments, name).tobytes() == getattr(own, name).tobytes()


def test_a_run_of_a_single_rank_has_no_rows_of_ranks(drawn: Callable[..., Segments]) -> None:
    own = condensed(own_of(replace(drawn(3), work={0: 0.1})))
    alone = replace(own, of_ranks=np.empty((0, own.values.shape[1])))
    assert unpacked(Features(alone, {}).packed()).segments.of_ranks.shape == alone.of_ranks.shape
