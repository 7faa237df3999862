"""The form of the Predict page: its fields as texts, and the run that they describe."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Self

from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.predict.script import JobScript, read_script
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.command.arguments import value_of
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import RANKS_MAX, STEPS_MAX, LikeRun, Question
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.advice.walltime import slurm_seconds

CONFIDENCES = {"0.9": 0.9, "0.95": 0.95, "0.99": 0.99}
USUAL = "0.95"


@dataclass(frozen=True)
class Form:
    """The fields as they were typed; empty where nothing was."""

    like: str = ""
    workload: str = ""
    system: str = ""
    ranks: str = ""
    nodes: str = ""
    config: str = ""
    steps: str = ""
    limit: str = ""
    confidence: str = ""
    price: str = ""

    @classmethod
    def of(cls, query: PageQuery) -> Self:
        """Return the fields of the address."""
        return cls(**{field.name: query.word(field.name) or "" for field in fields(cls)})

    @property
    def is_empty(self) -> bool:
        """Return whether nothing says which run is meant."""
        return not (self.like or self.workload)

    def over(self, script: JobScript, workload: str, names: Sequence[str] | None) -> Self:
        """Return the form with what a script says where nothing was typed; of the configuration these names alone."""
        kept = {name: value for name, value in script.configuration.items() if names is None or name in names}
        read = {
            "workload": workload,
            "ranks": str(script.ranks or ""),
            "nodes": str(script.nodes or ""),
            "limit": script.limit,
            "config": lines_of(kept),
        }
        return replace(self, **{name: text for name, text in read.items() if not getattr(self, name)})

    @property
    def level(self) -> float:
        """The certainty of the time limit. Raises: InvalidInputError."""
        return CONFIDENCES[PageQuery(asdict(self)).choice("confidence", tuple(CONFIDENCES)) or USUAL]

    @property
    def step_count(self) -> int | None:
        """Return the number of steps; None where the run is as long as earlier ones. Raises: InvalidInputError."""
        return self._whole("steps", STEPS_MAX)

    @property
    def limit_seconds(self) -> int | None:
        """Return the time limit in mind. Raises: InvalidInputError."""
        return slurm_seconds(self.limit) if self.limit else None

    @property
    def per_node_hour(self) -> float | None:
        """Return the price of a node and hour. Raises: InvalidInputError."""
        if not self.price:
            return None
        value = value_of(self.price)
        if isinstance(value, bool | str) or not 0 <= value < math.inf:
            raise InvalidInputError(f"price {self.price[:60]!r}: expected a number from 0 on")
        return float(value)

    def question(self, usual: Run | None) -> Question | LikeRun:
        """Return the run that is meant; `usual` is the newest of its workload. Raises: InvalidInputError."""
        configuration = configuration_of(self.config.splitlines())
        ranks, nodes = self._whole("ranks", RANKS_MAX), self._whole("nodes", RANKS_MAX)
        if self.like:
            return LikeRun(self.like, self.workload or None, self.system or None, configuration, ranks, nodes)
        system, ranks = self.system or (usual.system if usual else ""), ranks or (usual.world_size if usual else None)
        if self.workload and not system:
            raise InvalidInputError(
                f"workload {self.workload[:60]!r}: no run of it is stored; expected one, or a system"
            )
        for name, value in (("workload", self.workload), ("ranks", ranks)):
            if not value:
                raise InvalidInputError(f"{name}: missing, expected unless `like` names a stored run")
        return Question(self.workload, system, configuration, ranks or 1, nodes)

    def _whole(self, name: str, most: int) -> int | None:
        return PageQuery(asdict(self)).amount(name, 0, most=most) or None


def usual_run(client: Local, form: Form) -> Run | None:
    """Return the newest run of the form's workload, on its system if it names one."""
    if not form.workload:
        return None
    with client.store.catalog.read() as session:
        newest = session.runs.find(RunFilter(workload=form.workload, system=form.system or None), limit=1)
    return newest[0] if newest else None


def with_script(client: Local, form: Form, text: str) -> tuple[Form, JobScript]:
    """Return the form with what a batch script says, and that: of its arguments those that earlier runs recorded."""
    script = read_script(text)
    names = [name for name in (form.workload, script.workload, script.program, script.job_name) if name]
    stored = ((name, usual_run(client, Form(workload=name, system=form.system))) for name in names)
    workload, run = next((pair for pair in stored if pair[1]), (names[0] if names else "", None))
    return form.over(script, workload, list(run.configuration) if run else None), script


def configuration_of(lines: Sequence[str]) -> Configuration:
    """Return the configuration of lines `name=value`. Raises: InvalidInputError."""
    configuration: dict[str, Parameter] = {}
    for line in filter(None, map(str.strip, lines)):
        name, equals, text = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise InvalidInputError(f"config {line[:60]!r}: expected name=value, one a line")
        if name in configuration:
            raise InvalidInputError(f"config {name[:60]!r} is given twice, expected once")
        configuration[name] = value_of(text)
    return configuration


def lines_of(configuration: Configuration) -> str:
    """Return a configuration as lines `name=value`."""
    return "\n".join(f"{name}={text_of(value)}" for name, value in configuration.items())


def text_of(value: Parameter) -> str:
    """Return a value as `value_of` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
