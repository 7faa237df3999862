"""Checks of arguments that the formulas share."""

import math

from crosswind.data.schema.errors import InvalidInputError


def require_positive(**values: float) -> None:
    """Refuse values that are no finite number above 0. Raises: InvalidInputError naming the first one."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InvalidInputError(f"{name} is {value}, expected a positive number")


def require_not_negative(**values: float) -> None:
    """Refuse values that are no finite number of 0 or more. Raises: InvalidInputError naming the first one."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise InvalidInputError(f"{name} is {value}, expected 0 or more")


def require_count(*, least: int = 1, **values: int) -> None:
    """Refuse values that are no whole number of `least` or more. Raises: InvalidInputError naming the first one."""
    for name, value in values.items():
        if not math.isfinite(value) or value != int(value) or value < least:
            raise InvalidInputError(f"{name} is {value}, expected a whole number of {least} or more")
