"""The domain of a parameter of which nothing but values is known."""

import math
from collections.abc import Iterable, Mapping

from crosswind.data.errors import MalformedError
from crosswind.data.trial import Parameter

LISTED_MAX = 100  # different numbers seen that are taken for all there are; more are a range


def domain_of_values(values: Iterable[Parameter], *, listed_max: int = LISTED_MAX) -> Mapping[str, object]:
    """Numbers become an ordered list, or a range when there are many; texts and mixtures an unordered one.

    Raises: MalformedError where two values count as one (1 and true).
    """
    distinct = list(dict.fromkeys((type(value) is bool, value) for value in values))
    found: list[Parameter] = [value for _, value in distinct]
    if {type(value) for value in found} == {bool}:
        return {"kind": "boolean"}
    if len(set(found)) < len(found):
        raise MalformedError(f"values {found!r:.80}; expected not both numbers and truth values")
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return {"kind": "categorical", "values": found}
    numbers = sorted(value for value in found if isinstance(value, int | float))
    if not all(map(math.isfinite, numbers)):
        raise MalformedError(f"values {found!r:.80}; expected finite numbers")
    if len(numbers) <= listed_max:
        return {"kind": "ordinal", "values": numbers}
    kind = "int" if all(isinstance(value, int) for value in numbers) else "float"
    return {"kind": kind, "low": numbers[0], "high": numbers[-1], "log": False}


def allows(domain: Mapping[str, object], value: Parameter) -> bool:
    """Whether a value of the right type is among those that an ordered or unordered list has, or within a range."""
    listed = domain.get("values")
    if isinstance(listed, list):
        return any(each == value and isinstance(each, bool) is isinstance(value, bool) for each in listed)
    if domain["kind"] == "boolean":
        return isinstance(value, bool)
    low, high = domain["low"], domain["high"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_range = isinstance(low, int | float) and isinstance(high, int | float)
    return is_number and is_range and low <= value <= high  # type: ignore[operator]
