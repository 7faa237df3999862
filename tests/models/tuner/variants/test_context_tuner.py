"""A tuner for one context keeps what a tuner promises, within that context."""

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.variants.context_tuner import ContextTuner
from crosswind.models.tuner.variants.experience import Context, Experience

SPACE = Space.from_json({"level": {"kind": "ordinal", "values": [1, 2, 3]}})
HERE, THERE = Context("here", {"size": 1.0}), Context("there", {"size": 2.0})


def test_what_was_tried_elsewhere_may_be_tried_here() -> None:
    experiences = [Experience(THERE, {"level": level}, float(level)) for level in (1, 2, 3)]
    assert ContextTuner(SPACE, 0, HERE, experiences).suggest(1) == [{"level": 1}]
    tried = [*experiences, Experience(HERE, {"level": 1}, 5.0)]
    assert {configuration["level"] for configuration in ContextTuner(SPACE, 0, HERE, tried).suggest(9)} == {2, 3}


def test_a_space_too_large_to_rank_is_refused() -> None:
    large = Space.from_json({"level": {"kind": "int", "low": 1, "high": 1001}})
    with pytest.raises(InvalidInputError, match="1001 configurations, expected at most 1000"):
        ContextTuner(large, 0, HERE, [])
