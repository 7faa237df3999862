"""Study files: the objective of a search, its space and its budget, as people write them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import (
    HOURS_MAX,
    MAXIMISE,
    REPEATS_MAX,
    TRIALS_MAX,
    Configuration,
    Parameter,
    Study,
    is_wrapped,
    sources_from_json,
    unit_of_objective,
)
from crosswind.models.tuner.space.memory_fit import FITS, NEEDED
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.goal import Goal
from crosswind.models.tuner.study.objective import Objective
from crosswind.models.tuner.study.searches import check_search
from crosswind.models.tuner.study.start import check_start
from crosswind.models.tuner.study.stop_rules import rule_named
from crosswind.models.tuner.study.study_text import mapping_in
from crosswind.models.tuner.templates import template_named

FIELDS = (
    "name",
    "template",
    "objective",
    "direction",
    "unit",
    "parameters",
    "constraints",
    "facts",
    "transformer",
    "limits",
    "budget",
    "start",
    "search",
    "stop",
    "command",
    "seed",
    "stop_early",
    "sources",
    "details",
)
MINIMISE = "minimise"
DIRECTIONS = {"minimise": MINIMISE, "minimize": MINIMISE, "maximise": MAXIMISE, "maximize": MAXIMISE}
TEXT_MAX = 4000  # characters of a name, an objective or a command
BUDGET = "trials, hours and repeats"
WORD = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w.])[A-Za-z_][\w.]*""")  # quoted texts match whole, and stay
OBJECTIVE = "step_p50_seconds"


@dataclass(frozen=True)
class StudyFile:
    """The content of a study file, checked.

    Args:
        name: Of the study.
        space: JSON that `Space.from_json` reads.
        objectives: One, or several to trade off, as `Objective.parse` reads them.
        direction: `minimise` or `maximise` a single objective.
        unit: Of the first objective, empty without one.
        limits: As `Limit.parse` reads them.
        trials: The budget; None for no limit.
        hours: From the study's creation on, None for no limit.
        repeats: Share of the trials that may measure a close rival again.
        start: Configurations to try first.
        search: The name of the search; empty for the usual one.
        stop: `auto` to end when more trials are not worth it; empty to use up the budget.
        command: Words of the program that evaluates a trial, with `{parameter}`.
        seed: Of everything random.
        stop_early: The rule by which trials end early that report intermediate values; empty for the default.
        sources: Names of the only studies to learn from, () for none; None: what suits it.
        template: The template that the file took over, empty without one.
        details: Further facts, such as `workload` and `system`.
    """

    name: str
    space: Mapping[str, object]
    objectives: tuple[str, ...] = (OBJECTIVE,)
    direction: str = MINIMISE
    unit: str = ""
    limits: tuple[str, ...] = ()
    trials: int | None = None
    hours: float | None = None
    repeats: float | None = None
    start: tuple[Configuration, ...] = ()
    search: str = ""
    stop: str = ""
    command: tuple[str, ...] = ()
    seed: int = 0
    stop_early: str = ""
    sources: tuple[str, ...] | None = None
    template: str = ""
    details: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the study in a .yaml, .json or .toml file; without a `name` it is called like the file.

        Raises: UnavailableError, MalformedError, InvalidInputError; all name the file, the last one also the field.
        """
        fields = mapping_in(path)
        try:
            return cls.from_json({"name": path.stem, **fields})
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from error

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Self:
        """Return the study of plain JSON values. Raises: InvalidInputError that names field, value and expectation."""
        unknown = [str(name) for name in fields if name not in FIELDS]
        if unknown:
            raise InvalidInputError(f"there is no field {unknown[0]!r}, expected {', '.join(FIELDS)}")
        space, limits = _space_and_limits(fields)
        objectives, direction = _objectives(fields)
        trials, hours, repeats = _budget(fields.get("budget", {}))
        read = cls(
            name=_text(fields, "name", ""),
            space=space,
            objectives=objectives,
            direction=direction,
            unit=_unit(fields, objectives[0]),
            limits=limits,
            trials=trials,
            hours=hours,
            repeats=repeats,
            start=_start(fields.get("start", ())),
            search=_text(fields, "search", "") if "search" in fields else "",
            stop=_text(fields, "stop", "") if "stop" in fields else "",
            command=_texts(fields.get("command", ()), "command"),
            seed=_whole(fields.get("seed", 0), "seed", (0, 2**31 - 1)),
            stop_early=_stop_early(fields),
            sources=sources_from_json(fields.get("sources", "auto")),
            template=_text(fields, "template", "") if "template" in fields else "",
            details=_details(fields.get("details", {})),
        )
        Goal.parse(objectives, limits)
        check_start(study := read.study("", 0))
        check_search(study)
        if repeats is not None and (limits or len(objectives) > 1):
            raise InvalidInputError(f"budget: repeats is {repeats}, expected none beside limits or several objectives")
        return read

    def as_json(self) -> dict[str, object]:
        """Return the study as plain JSON values that `from_json` reads, its template filled in."""
        space = self.space if is_wrapped(self.space) else {"parameters": dict(self.space)}
        budget = {"trials": self.trials, "hours": self.hours, "repeats": self.repeats}
        further = {
            "limits": list(self.limits),
            "budget": {name: value for name, value in budget.items() if value is not None},
            "start": [dict(configuration) for configuration in self.start],
            "search": self.search,
            "stop": self.stop,
            "command": list(self.command),
            "stop_early": self.stop_early,
            "sources": "none" if self.sources == () else list(self.sources or ()),
            "details": dict(self.details),
        }
        return {
            "name": self.name,
            "objective": list(self.objectives) if len(self.objectives) > 1 else self.objectives[0],
            "direction": self.direction,
            "unit": self.unit,
            "seed": self.seed,
            **space,
            **{name: value for name, value in further.items() if value},
        }

    def study(self, study_id: str, created_ns: int) -> Study:
        """Return the study as services keep it; `details` may hold further facts of it, such as its workload."""
        first = Objective.parse(self.objectives[0])
        facts: dict[str, object] = {
            "direction": MAXIMISE if first.is_maximised or self.direction == MAXIMISE else "",
            "objectives": self.objectives if len(self.objectives) > 1 else (),
            "limits": self.limits,
            "hours": self.hours,
            "repeats": self.repeats,
            "start": self.start,
            "search": self.search,
            "stop": self.stop,
            "command": self.command,
            "stop_early": self.stop_early,
            "sources": "none" if self.sources == () else self.sources,
            "template": self.template,
        }
        fields = {
            "study_id": study_id,
            "name": self.name,
            "space": self.space,
            "objective": first.expression.text,
            "unit": self.unit,
            "seed": self.seed,
            "created_ns": created_ns,
            "trials_max": self.trials,
            "details": {**self.details, **{name: value for name, value in facts.items() if value}},
        }
        return Study.from_json(fields)


def _space_and_limits(fields: Mapping[str, object]) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """Return the space, of the template's and the file's own parts, and the limits with their facts filled in."""
    own = {name: fields.get(name, {}) for name in ("parameters", "facts", "transformer")}
    for name, value in own.items():
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"{name} is {value!r:.80}, expected an object of names and values")
    constraints, limits = (
        _texts(fields.get("constraints", ()), "constraints"),
        _texts(fields.get("limits", ()), "limits"),
    )
    parameters = dict(own["parameters"])  # type: ignore[call-overload]
    facts: Mapping[str, Parameter] = dict(own["facts"])  # type: ignore[call-overload]
    if "template" in fields:
        template = template_named(fields["template"])
        parameters = template.parameters_with(parameters)
        names = {*parameters, *facts, *dict(own["transformer"])}  # type: ignore[call-overload]
        names |= {FITS, NEEDED} if own["transformer"] else set()
        constraints = (*template.constraints_for(frozenset(names), facts), *constraints)
        limits = (*template.limits, *limits)
    wrapped = {
        "parameters": parameters,
        "constraints": list(constraints),
        "facts": facts,
        "transformer": own["transformer"],
    }
    space = Space.from_json({name: value for name, value in wrapped.items() if value or name == "parameters"})
    return space.as_json(), tuple(_filled(text, facts) for text in limits)


def _filled(text: str, facts: Mapping[str, Parameter]) -> str:
    """Return the text with facts in place of their names."""
    return WORD.sub(lambda match: repr(facts[match[0]]) if match[0] in facts else match[0], text)


def _objectives(fields: Mapping[str, object]) -> tuple[tuple[str, ...], str]:
    """Return the objectives and, of a single one, its direction: from its field or the word before it."""
    facts = fields.get("facts", {})
    texts = _texts(fields.get("objective", OBJECTIVE), "objective")
    if isinstance(facts, Mapping):
        texts = tuple(_filled(text, facts) for text in texts)
    if not texts:
        raise InvalidInputError("objective is empty, expected an outcome such as step_p50_seconds")
    direction = fields.get("direction", MINIMISE)
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise InvalidInputError(f"direction is {direction!r}, expected minimise or maximise")
    if len(texts) > 1:
        if DIRECTIONS[direction] == MAXIMISE:
            raise InvalidInputError("direction is maximise with several objectives, expected 'maximise NAME' in each")
        return texts, MINIMISE
    only = Objective.parse(texts[0])
    return (only.expression.text,), MAXIMISE if only.is_maximised else DIRECTIONS[direction]


def _budget(value: object) -> tuple[int | None, float | None, float | None]:
    """Return trials, hours and the share of repeats."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"budget is {value!r:.80}, expected {BUDGET}, such as {{'trials': 20}}")
    unknown = [str(name) for name in value if name not in ("trials", "hours", "repeats")]
    if unknown:
        raise InvalidInputError(f"budget has no field {unknown[0]!r}, expected {BUDGET}")
    trials = value.get("trials")
    whole = None if trials is None else _whole(trials, "budget: trials", (1, TRIALS_MAX))
    return whole, _positive(value, "hours", HOURS_MAX), _positive(value, "repeats", REPEATS_MAX)


def _start(value: object) -> tuple[Configuration, ...]:
    """Return one configuration or a list of them as a tuple."""
    entries = [value] if isinstance(value, Mapping) else value
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InvalidInputError(f"start is {value!r:.80}, expected a configuration such as {{'batch': 32}}, or a list")
    return tuple(dict(entry) for entry in entries)


def _positive(budget: Mapping[object, object], name: str, most: float) -> float | None:
    value = budget.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise InvalidInputError(f"budget: {name} is {value!r}, expected a number above 0 up to {most:g}")
    return float(value)


def _stop_early(fields: Mapping[str, object]) -> str:
    name = _text(fields, "stop_early", "") if "stop_early" in fields else ""
    rule_named(name)
    return name


def _whole(value: object, name: str, ends: tuple[int, int]) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not ends[0] <= value <= ends[1]:
        raise InvalidInputError(f"{name} is {value!r:.80}, expected a whole number from {ends[0]} to {ends[1]}")
    return value


def _text(fields: Mapping[str, object], name: str, default: str) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not value.strip() or len(value) > TEXT_MAX:
        raise InvalidInputError(f"{name} is {value!r:.80}, expected a text of 1 to {TEXT_MAX} characters")
    return value


def _unit(fields: Mapping[str, object], objective: str) -> str:
    """Return the unit of the first objective: as given, which may be empty, else as its name says."""
    if fields.get("unit") == "":
        return ""
    if "unit" in fields:
        return _text(fields, "unit", "")
    return unit_of_objective(Objective.parse(objective).expression.text)


def _texts(value: object, name: str) -> tuple[str, ...]:
    """Return one text or a list of texts as a tuple."""
    texts: Sequence[object] = (
        [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [None]
    )
    return tuple(_text({name: text}, name, "") for text in texts)


def _details(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidInputError(f"details is {value!r:.80}, expected an object of names and values")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"details is {value!r:.80}, expected values that JSON has: {error}") from error
    return dict(value)
