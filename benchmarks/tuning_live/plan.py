"""Search space of a live study, and how much of it is measured."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.space.space import Space

ROUNDS_MIN = 2
STUDIES = "TUNER_LIVE_STUDIES"  # seeds, by comma
SPACE: Mapping[str, object] = {
    "batch": {"kind": "ordinal", "values": [4, 8, 16, 32], "description": "samples of a rank and step"},
    "bucket_mb": {"kind": "ordinal", "values": [0.25, 1.0, 4.0], "description": "MiB reduced together; all are 2 MiB"},
    "threads": {"kind": "ordinal", "values": [1, 2], "description": "of each rank"},
    "workers": {"kind": "ordinal", "values": [0, 1, 2], "description": "of each rank's loader"},
}


@dataclass(frozen=True)
class Plan:
    """Extent of the measurements.

    Every configuration is measured in `rounds`, the `finalists` best of them in `final_rounds` more. Each of the
    `seeds` is one study of `trials` by every tuner, under a neighbour's load where the seed is odd. A measurement
    takes about `seconds` of steps.
    """

    space_json: Mapping[str, object] = field(default_factory=lambda: SPACE)
    seeds: tuple[int, ...] = tuple(range(10))
    trials: int = 15
    rounds: int = 3
    finalists: int = 12
    final_rounds: int = 4
    seconds: float = 1.5

    def __post_init__(self) -> None:
        if self.rounds < ROUNDS_MIN:
            raise InvalidInputError(f"rounds is {self.rounds}, expected at least {ROUNDS_MIN}: one tells no spread")

    @classmethod
    def from_environment(cls) -> Self:
        """The whole plan, or the studies that TUNER_LIVE_STUDIES names. Raises: InvalidInputError."""
        studies = os.environ.get(STUDIES)
        return cls() if studies is None else replace(cls(), seeds=_seeds(studies))

    @property
    def space(self) -> Space:
        """The configurations to choose from."""
        return Space.from_json(self.space_json)

    @property
    def setup(self) -> dict[str, object]:
        """All but the seeds: what was measured under another setup is not compared."""
        return {name: value for name, value in asdict(self).items() if name != "seeds"}


def _seeds(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise InvalidInputError(f"{STUDIES} is {text!r}, expected seeds by comma, such as 0,1,2")
    return tuple(int(word) for word in words)
