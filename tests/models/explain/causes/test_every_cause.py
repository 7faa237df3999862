from collections.abc import Callable

import numpy as np
import pytest

from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.causes.cause import Cause, Excess, Observed
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import PHASES


def excess(value: float, count: int) -> Excess:
    return Excess({name: np.full(count, value) for name in COLUMNS}, dict.fromkeys(COLUMNS, 0.0))


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
class TestEveryCause:
    def test_it_claims_phases_in_seconds_of_the_shape_it_was_given(self, cause: Cause) -> None:
        claims = cause.claims(excess(0.01, 7))
        assert claims
        assert set(claims) <= set(PHASES)
        assert all(claim.shape == (7,) for claim in claims.values())

    def test_it_claims_nothing_where_nothing_is_in_excess(self, cause: Cause) -> None:
        claims = cause.claims(excess(0.0, 3))
        assert all((np.nan_to_num(claim) <= 0).all() for claim in claims.values())

    def test_it_says_by_which_columns_it_is_judged(self, cause: Cause) -> None:
        assert cause.columns
        assert set(cause.columns) <= set(COLUMNS)

    def test_it_says_what_speaks_for_it_and_what_to_do(self, cause: Cause) -> None:
        values = dict.fromkeys(COLUMNS, 0.01)
        text = cause.evidence(Observed(values, values))
        assert "expected" in text
        assert cause.next_action.endswith(".")
        assert cause.name == cause.name.lower().replace(" ", "_")


def test_no_two_causes_share_a_name() -> None:
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)


def test_every_phase_has_a_cause(drawn: Callable[..., Segments]) -> None:
    assert {phase for cause in CAUSES for phase in cause.claims(excess(1.0, 1))} == set(PHASES)
