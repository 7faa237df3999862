"""Registered models: what a version learned from, how it fared, and where it stands."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.errors import InvalidInputError

ROW_LOSSES_MAX = 500  # newest validation rows whose loss is kept; drift is judged against them


class ModelState(StrEnum):
    """The state of a version; of one name at most one is promoted."""

    CANDIDATE = "candidate"
    PROMOTED = "promoted"
    RETIRED = "retired"
    DEMOTED = "demoted"


@dataclass(frozen=True)
class Learned:
    """Data that a model has seen, training and validation together: rows, their window (ns UTC), its inputs' names."""

    rows: int
    from_ns: int
    to_ns: int
    features: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # where the rows came from, such as {"system": "lab"}

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InvalidInputError(f"rows is {self.rows}, expected at least 1")
        if self.from_ns > self.to_ns:
            raise InvalidInputError(f"the data window ends at {self.to_ns}, before it begins at {self.from_ns}")


@dataclass(frozen=True)
class Evidence:
    """On what grounds a model may be believed.

    Losses are mean pinball losses of log seconds (0.01 = 1 %), the model's and the naive baselines' on the same
    `validated_rows`, which are later than those it was fitted to. `coverage` has for each level of a quantile the share
    of validation rows at or below it.
    """

    learned: Learned
    validated_rows: int
    loss: float
    baselines: Mapping[str, float]
    coverage: tuple[tuple[float, float], ...]
    row_losses: tuple[float, ...]  # of the newest validation rows, in the order of time

    def __post_init__(self) -> None:
        numbers = {"loss": self.loss, **{f"baselines.{name}": loss for name, loss in self.baselines.items()}}
        numbers |= {f"row_losses[{place}]": loss for place, loss in enumerate(self.row_losses)}
        for name, loss in numbers.items():
            if not (math.isfinite(loss) and loss >= 0):
                raise InvalidInputError(f"{name} is {loss}, expected a finite number, 0 or more")
        for level, share in self.coverage:
            if not (0 < level < 1 and 0 <= share <= 1):
                raise InvalidInputError(f"coverage at level {level} is {share}, expected levels and shares in [0, 1]")
        if len(self.row_losses) > ROW_LOSSES_MAX:
            raise InvalidInputError(f"{len(self.row_losses)} row losses, expected at most {ROW_LOSSES_MAX}")


@dataclass(frozen=True)
class Change:
    """One change of a version's state: when (ns UTC), to which, and why."""

    at_ns: int
    state: ModelState
    reason: str


@dataclass(frozen=True)
class ModelRecord:
    """One version of a model; `parent` is the version that was promoted when it was made."""

    name: str
    version: int
    state: ModelState
    made_ns: int
    evidence: Evidence
    parent: int | None
    code_version: str
    file_name: str  # below the folder `models` of the store
    digest: str  # SHA-256 of the file, hexadecimal
    promoted_ns: int | None = None
    note: str = ""  # the reason of the newest change
    history: tuple[Change, ...] = ()
