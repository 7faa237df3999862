"""A study's query for runs that it was never part of, and the evidence that answers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space


@dataclass(frozen=True)
class RunQuery:
    """A query for evidence about a space.

    Args:
        workload: The study's workload.
        system: The study's system.
        space: The parameters that are tuned.
        objective: An expression over run_outcomes.OUTCOMES, parameters of the space and of `fixed`; lower is better.
        world_size: Ranks of the study's runs; None for every scale, where the space decides on it.
        fixed: Parameters of the runs that the study does not tune: runs with other values there are sources.
        related: Other workloads of the family.
        study_id: The study itself, whose own runs are no further evidence.
        studies: Other studies, by id or name, that count though they name no workload.
        runs_max: Of each workload the newest so many runs count.

    Raises:
        InvalidInputError: For an empty name, or a parameter both tuned and fixed.
    """

    workload: str
    system: str
    space: Space
    objective: str
    world_size: int | None = None
    fixed: Configuration = field(default_factory=dict)
    related: tuple[str, ...] = ()
    study_id: str | None = None
    studies: tuple[str, ...] = ()
    runs_max: int = 100_000

    def __post_init__(self) -> None:
        for name, value in (("workload", self.workload), ("system", self.system)):
            if not value:
                raise InvalidInputError(f"{name} is {value!r}, expected a name")
        if self.world_size is not None and self.world_size < 1:
            raise InvalidInputError(f"world_size is {self.world_size}, expected 1 or more, or none")
        both = sorted(self.fixed.keys() & self.space.domains.keys())
        if both:
            raise InvalidInputError(f"parameter {both[0]} is fixed at {self.fixed[both[0]]!r}, expected it not tuned")


@dataclass(frozen=True)
class Evidence:
    """The stored evidence: sources, finished trials, and how many runs and trials were left out for which reason.

    The ids of the trials are `run-` and the run's.
    """

    sources: tuple[Source, ...]
    trials: tuple[Trial, ...]
    left_out: Mapping[str, int]
