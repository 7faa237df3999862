"""Questions: what is asked about, and whether it can be."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Configuration

RANKED_RUNS = 20_000  # the newest, unless more are requested
REGRESSION_RUNS = 5000  # the same of completed runs
TRACED_NAMES = 10  # kernels and operators of traces, unless more are asked for
HOURS_MAX = 24  # that can be looked ahead
HOUR_SECONDS = 3600
RANKS_MAX = 10_000_000
SCALES_MAX = 64
STEPS_MAX = 10_000_000  # of a run
BATCH_MAX = 1_000_000_000  # samples of one step of all ranks
NS_MAX = 2**63 - 1
NUMBERS = (int, float)
DEGREES: Mapping[str, tuple[str, ...]] = {  # what people call the degrees of parallelism, whose product is the ranks
    "data": ("data_parallel", "dp", "data_parallel_size", "dp_size"),
    "tensor": ("tensor_parallel", "tp", "tensor_parallel_size", "tensor_model_parallel_size", "tp_size"),
    "pipeline": ("pipeline_parallel", "pp", "pipeline_parallel_size", "pipeline_model_parallel_size", "pp_size"),
    "context": ("context_parallel", "cp", "context_parallel_size", "cp_size"),
}
DEGREE_NAMES = frozenset(name for names in DEGREES.values() for name in names)
MAIN_DEGREES = {"data", "tensor", "pipeline"}  # where all three are given, an unmentioned context is 1


@dataclass(frozen=True)
class Question:
    """A run to come; `node_count` None is not known.

    Facts that are not given, and `started_ns` (ns UTC), are those of the newest runs on its system.
    Raises: InvalidInputError naming what contradicts what.
    """

    workload: str
    system: str
    configuration: Configuration = field(default_factory=dict)
    world_size: int = 1
    node_count: int | None = None
    facts: Facts = field(default_factory=Facts)
    started_ns: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.world_size <= RANKS_MAX:
            raise InvalidInputError(f"world_size {self.world_size}: expected 1 to {RANKS_MAX}")
        if self.node_count is not None and not 1 <= self.node_count <= self.world_size:
            raise InvalidInputError(f"node_count {self.node_count}: expected 1 to the {self.world_size} ranks")
        if self.started_ns is not None and not 0 <= self.started_ns <= NS_MAX:
            raise InvalidInputError(f"started_ns {self.started_ns}: expected 0 to {NS_MAX}")
        for name, value in self.configuration.items():
            if not is_scalar(value):
                raise InvalidInputError(f"configuration {name} is {value!r:.80}, expected a text or a finite number")

    def as_json(self) -> dict[str, object]:
        """Return the question as requests carry it, without what it leaves out."""
        return _plain(vars(self), self.configuration, self.facts)


@dataclass(frozen=True)
class LikeRun:
    """A run to come that is like the stored run `like` in all that is not given here.

    A parameter that is given replaces the run's value. On other ranks the run has as many ranks a node as before.
    """

    like: str
    workload: str | None = None
    system: str | None = None
    configuration: Configuration = field(default_factory=dict)
    world_size: int | None = None
    node_count: int | None = None
    facts: Facts = field(default_factory=Facts)
    started_ns: int | None = None

    def as_json(self) -> dict[str, object]:
        """Return what is asked as requests carry it, without what it leaves out."""
        return _plain(vars(self), self.configuration, self.facts)

    def question(self, run: Run) -> Question:
        """Return what is asked, given the stored run. Raises: InvalidInputError as `Question`, or without ranks."""
        world_size = self.world_size or run.world_size
        if world_size is None:
            raise InvalidInputError(
                f"world_size: run {run.run_id} does not say how many ranks it had, expected a number"
            )
        return Question(
            self.workload or run.workload,
            self.system or run.system,
            {**run.configuration, **self.configuration},
            world_size,
            self.node_count or _nodes_like(run, world_size),
            self.facts.over(self._facts_of(run, world_size)),
            self.started_ns,
        )

    def _facts_of(self, run: Run, world_size: int) -> Facts:
        """The run's facts, without its sizes on other ranks; none of another system."""
        if self.system not in (None, run.system):
            return Facts()
        is_same_size = world_size == run.world_size
        return run.facts if is_same_size else replace(run.facts, accelerators=None, node_count=None)


def _plain(fields: Mapping[str, object], configuration: Configuration, facts: Facts) -> dict[str, object]:
    plain: dict[str, object] = {**fields, "configuration": dict(configuration), "facts": facts.given}
    return {name: value for name, value in plain.items() if value not in (None, {}) or name == "configuration"}


def _nodes_like(run: Run, world_size: int) -> int | None:
    """Return the number of nodes with as many ranks on each as the run had; None where that is unknown."""
    if not run.nodes or not run.world_size:
        return None
    return min(math.ceil(world_size * len(run.nodes) / run.world_size), world_size)


@dataclass(frozen=True)
class Price:
    """The power and price of a node at work; None where unknown."""

    node_watts: float | None = None
    per_node_hour: float | None = None
    carbon_grams_per_kilowatt_hour: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < math.inf:
                raise InvalidInputError(f"{name} {value}: expected 0 or more")


@dataclass(frozen=True)
class Scales:
    """The numbers of nodes in question, and the job they are for."""

    node_counts: Sequence[int]
    ranks_per_node: int
    deadline_seconds: float | None = None
    now: int | None = None  # nodes that an elastic job has

    def __post_init__(self) -> None:
        if not 1 <= len(self.node_counts) <= SCALES_MAX:
            raise InvalidInputError(f"{len(self.node_counts)} numbers of nodes: expected 1 to {SCALES_MAX}")
        if self.ranks_per_node < 1:
            raise InvalidInputError(f"ranks_per_node {self.ranks_per_node}: expected 1 or more")
        if self.deadline_seconds is not None and not self.deadline_seconds > 0:
            raise InvalidInputError(f"deadline_seconds {self.deadline_seconds}: expected more than 0")
        if self.now is not None and self.now < 1:
            raise InvalidInputError(f"now {self.now}: expected 1 node or more")


def is_scalar(value: object) -> bool:
    """Return whether this is a text, a truth value or a number that a float can hold."""
    return isinstance(value, str) or (isinstance(value, NUMBERS) and abs(value) <= sys.float_info.max)


def check_degrees(question: Question) -> None:
    """Refuses degrees of parallelism that do not multiply to the ranks; one that is not given is what is left.

    Not for what ran: it could. Raises: InvalidInputError.
    """
    configuration, world_size = question.configuration, question.world_size
    if DEGREE_NAMES.isdisjoint(configuration):
        return
    given = {kind: degree for kind, names in DEGREES.items() if (degree := _degree(configuration, names)) is not None}
    product = math.prod(given.values())
    words = " x ".join(f"{kind} {degree}" for kind, degree in given.items())
    if given.keys() >= MAIN_DEGREES and product != world_size:
        raise InvalidInputError(f"configuration: parallel degrees {words} make {product} ranks, expected {world_size}")
    if given and world_size % product:
        raise InvalidInputError(f"configuration: parallel degrees {words} do not divide {world_size} ranks")


def _degree(configuration: Configuration, names: tuple[str, ...]) -> int | None:
    given: dict[str, Scalar] = {name: configuration[name] for name in names if name in configuration}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 1:
            raise InvalidInputError(f"configuration {name} is {value!r}, expected a whole number from 1 on")
    if len({*given.values()}) > 1:
        settings = ", ".join(f"{name} {value}" for name, value in given.items())
        raise InvalidInputError(f"configuration: {settings} are one degree, expected one value")
    return next((int(value) for value in given.values() if isinstance(value, int | float)), None)
