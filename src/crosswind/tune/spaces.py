"""Spaces as Python programs write them: dictionaries with short forms, and dataclasses.

| form | parameter |
|---|---|
| `(1, 64)`, `(0.0, 0.9)` | a whole number, a number, from low to high |
| `(1e-5, 1e-1, "log")` | the same on a logarithmic scale |
| `range(0, 9, 2)` | whole numbers in steps |
| `[8, 16, 32]` | one of these; rising numbers have an order, anything else has none |
| `[False, True]` | a boolean |
| `{"kind": "int", ...}` | as in a study file |
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import pairwise
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, is_wrapped
from crosswind.models.tuner.space.space import WRAPPED

METADATA = "tune"  # of a dataclass's field, in place of an annotation
EXPECTED = "expected (low, high), (low, high, 'log'), range(...), a list of values, or {'kind': ...}"
FORMS = (tuple, list, range, Mapping)


@dataclass(frozen=True)
class Form:
    """A space that a program has written.

    Args:
        fields: `parameters` and what binds them, as a study file has them.
        start: The values that the program has today; empty without any.
        make: Makes the program's own object of a configuration; None where that is a mapping.
    """

    fields: Mapping[str, object]
    start: Configuration = dataclasses.field(default_factory=dict)
    make: Callable[[Configuration], object] | None = None


def form_of(space: object) -> Form:
    """Return the form of a dictionary, a dataclass or an instance of one. Raises: InvalidInputError."""
    if is_dataclass(space):
        return _of_dataclass(space)
    if not isinstance(space, Mapping):
        raise InvalidInputError(f"space is {space!r:.80}, expected a dictionary of parameters or a dataclass")
    if not is_wrapped(space):
        return Form({"parameters": _parameters(space)})
    unknown = sorted(str(name) for name in space if name not in WRAPPED)
    if unknown:
        raise InvalidInputError(f"the space has no field {unknown[0]!r}, expected {', '.join(WRAPPED)}")
    return Form({**space, "parameters": _parameters(space["parameters"])})


def parameter_of(name: str, form: object) -> dict[str, object]:
    """Return the parameter of a short form as a study file has it. Raises: InvalidInputError naming the parameter."""
    if isinstance(form, Mapping):
        return dict(form)
    if isinstance(form, range):
        return _of_range(name, form)
    if isinstance(form, tuple):
        return _of_ends(name, form)
    if isinstance(form, list):
        return _of_values(form)
    raise InvalidInputError(f"parameter {name} is {form!r:.80}, {EXPECTED}")


def _parameters(space: Mapping[str, object]) -> dict[str, object]:
    return {name: parameter_of(name, form) for name, form in space.items()}


def _of_ends(name: str, form: tuple[object, ...]) -> dict[str, object]:
    low, high, *scale = form if len(form) in (2, 3) else (None, None)
    is_fit = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    if not is_fit or scale not in ([], ["log"]):
        raise InvalidInputError(f"parameter {name} is {form!r:.80}, {EXPECTED}")
    kind = "int" if isinstance(low, int) and isinstance(high, int) else "float"
    return {"kind": kind, "low": low, "high": high} | ({"log": True} if scale else {})


def _of_range(name: str, form: range) -> dict[str, object]:
    if not form:
        raise InvalidInputError(f"parameter {name} is {form!r}, expected a range with at least one number")
    ends = {"low": min(form[0], form[-1]), "high": max(form[0], form[-1])}
    return {"kind": "int", **ends} | ({"step": abs(form.step)} if abs(form.step) > 1 else {})


def _of_values(values: Sequence[Any]) -> dict[str, object]:
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if len(values) == 2 and {id(value) for value in values} == {id(False), id(True)}:
        return {"kind": "boolean"}
    is_ordered = are_numbers and all(first < second for first, second in pairwise(values))
    return {"kind": "ordinal" if is_ordered else "categorical", "values": list(values)}


def _of_dataclass(space: Any) -> Form:
    kind, is_instance = (space, False) if isinstance(space, type) else (type(space), True)
    marks = _marks(kind)
    if not marks:
        raise InvalidInputError(
            f"dataclass {kind.__name__} marks no field, expected some as in lr: Annotated[float, (1e-5, 1e-1, 'log')]"
        )
    defaults = {field.name: getattr(space, field.name) for field in fields(kind)} if is_instance else _defaults(kind)
    missing = [field.name for field in fields(kind) if field.init and field.name not in {*defaults, *marks}]
    if missing:
        raise InvalidInputError(f"field {missing[0]} of {kind.__name__} has no default, expected one or an instance")
    start: dict[str, Any] = {name: defaults[name] for name in marks if name in defaults}
    make = (lambda values: dataclasses.replace(space, **values)) if is_instance else (lambda values: kind(**values))
    return Form({"parameters": _parameters(marks)}, start if len(start) == len(marks) else {}, make)


def _marks(kind: type) -> dict[str, object]:
    """Return the forms of the fields that are to be tuned, from their metadata or annotations."""
    hints = get_type_hints(kind, include_extras=True)
    forms = {field.name: field.metadata.get(METADATA, _annotated(hints[field.name])) for field in fields(kind)}
    return {name: form for name, form in forms.items() if form is not None}


def _annotated(hint: object) -> object:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note for note in notes if isinstance(note, FORMS)), None)


def _defaults(kind: type) -> dict[str, object]:
    made = {field.name: field.default for field in fields(kind)} | {
        field.name: field.default_factory() for field in fields(kind) if field.default_factory is not MISSING
    }
    return {name: value for name, value in made.items() if value is not MISSING}
