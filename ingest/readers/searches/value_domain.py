"""The domain of a parameter, derived from its values alone."""

import math
from collections.abc import Iterable, Mapping

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import Parameter

LISTED_MAX = 100  # up to so many different numbers are a list of all; more are a range


def domain_of_values(values: Iterable[Parameter], *, listed_max: int = LISTED_MAX) -> Mapping[str, object]:
    """Return an ordered list of numbers, or a range when there are many; for texts and mixtures an unordered list.

    Raises: MalformedError when two values are equal (1 and true).
    """
    distinct = list(dict.fromkeys((type(value) is bool, value) for value in values))
    unique: list[Parameter] = [value for _, value in distinct]
    if {type(value) for value in unique} == {bool}:
        return {"kind": "boolean"}
    if len(set(unique)) < len(unique):
        raise MalformedError(f"values {unique!r:.80}; expected not both numbers and truth values")
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in unique):
        return {"kind": "categorical", "values": unique}
    numbers = sorted(value for value in unique if isinstance(value, int | float))
    if not all(map(math.isfinite, numbers)):
        raise MalformedError(f"values {unique!r:.80}; expected finite numbers")
    if len(numbers) <= listed_max:
        return {"kind": "ordinal", "values": numbers}
    kind = "int" if all(isinstance(value, int) for value in numbers) else "float"
    return {"kind": kind, "low": numbers[0], "high": numbers[-1], "log": False}


def allows(domain: Mapping[str, object], value: Parameter) -> bool:
    """Return whether a value of the right type is among those of an ordered or unordered list, or within a range."""
    listed = domain.get("values")
    if isinstance(listed, list):
        return any(option == value and isinstance(option, bool) is isinstance(value, bool) for option in listed)
    if domain["kind"] == "boolean":
        return isinstance(value, bool)
    low, high = domain["low"], domain["high"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_range = isinstance(low, int | float) and isinstance(high, int | float)
    return is_number and is_range and low <= value <= high  # type: ignore[operator]
