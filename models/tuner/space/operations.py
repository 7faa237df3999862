"""The operations of an expression: their values, and their bounds for ranges of values."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.trial import Parameter

MAGNITUDE_MAX = 1e300  # of any number in an expression, which bounds how long its digits can get

Range = tuple[float, float] | None  # lowest and highest possible number; None if unknown
UNSURE = (0.0, 1.0)
TRUE = (1.0, 1.0)
FALSE = (0.0, 0.0)


@dataclass(frozen=True)
class Operation:
    """One operation; `apply` may raise ValueError, TypeError or ArithmeticError where it has no value."""

    name: str
    apply: Callable[..., Parameter] = field(compare=False, repr=False)
    bounds: Callable[[Sequence[Range]], Range] = field(default=lambda _: None, compare=False, repr=False)
    is_numeric: bool = field(default=True, compare=False, repr=False)  # refuses texts
    takes_missing: bool = field(default=False, compare=False, repr=False)  # accepts missing values
    is_exact_in_any_order: bool = field(default=False, compare=False, repr=False)  # for whole numbers


def power(base: float, exponent: float) -> float:
    """Return the power, refused before its digits get long. Raises: ValueError, ArithmeticError."""
    rough = math.pow(base, exponent)  # refuses what overflows or is complex
    return base**exponent if abs(rough) < MAGNITUDE_MAX else rough


def _same(first: object, second: object) -> bool:
    return isinstance(first, str) is isinstance(second, str) and first == second


def _sum(*numbers: float) -> float:
    return _in_order(operator.add, numbers, 0)


def _product(*numbers: float) -> float:
    return _in_order(operator.mul, numbers, 1)


def _in_order(combine: Callable[[float, float], float], numbers: Sequence[float], start: int) -> float:
    # Whole numbers first: they are exact in any order, so that the order of evaluation does not matter.
    whole: float = start
    for number in numbers:
        whole = combine(whole, number) if isinstance(number, int) else whole
    for number in numbers:
        whole = whole if isinstance(number, int) else combine(whole, number)
    return whole


def _ends(values: Callable[[Sequence[tuple[float, float]]], Sequence[float]]) -> Callable[[Sequence[Range]], Range]:
    """Return bounds by the values at some corners, the least and greatest; None where one is missing."""

    def bounds(ranges: Sequence[Range]) -> Range:
        spans = [span for span in ranges if span is not None]
        if len(spans) < len(ranges):
            return None
        try:
            corners = values(spans)
        except (ArithmeticError, ValueError, TypeError):
            return None
        ends = min(corners), max(corners)
        return ends if all(abs(end) < MAGNITUDE_MAX for end in ends) else None

    return bounds


def _corners(apply: Callable[[float, float], float]) -> Callable[[Sequence[tuple[float, float]]], Sequence[float]]:
    return lambda ranges: [apply(a, b) for a in ranges[0] for b in ranges[1]]


def _product_ends(ranges: Sequence[tuple[float, float]]) -> Sequence[float]:
    ends: Sequence[float] = (1.0,)
    for low, high in ranges:
        products = [end * other for end in ends for other in (low, high)]
        ends = (min(products), max(products))
    return ends


def _quotient_ends(ranges: Sequence[tuple[float, float]], divide: Callable[[float, float], float]) -> Sequence[float]:
    if ranges[1][0] <= 0 <= ranges[1][1]:
        raise ZeroDivisionError
    return _corners(divide)(ranges)


def _remainder_ends(ranges: Sequence[tuple[float, float]]) -> Sequence[float]:
    if ranges[1][0] <= 0:
        raise ValueError
    return (0.0, ranges[1][1])


def _power_ends(ranges: Sequence[tuple[float, float]]) -> Sequence[float]:
    (low, high), (least, most) = ranges
    if low > 0:
        return _corners(math.pow)(ranges)
    if least != most or least < 0 or least != int(least):
        raise ValueError
    turn = [0.0] if high >= 0 and least > 0 else []  # an even power turns around there
    return [low**least, high**least, *turn]


def _at_ends(apply: Callable[[float], float]) -> Callable[[Sequence[tuple[float, float]]], Sequence[float]]:
    return lambda ranges: [apply(end) for end in ranges[0]]


def _less_ends(ranges: Sequence[Range]) -> Range:
    first, second = ranges
    if first is None or second is None:
        return UNSURE
    return TRUE if first[1] < second[0] else FALSE if first[0] >= second[1] else UNSURE


def _not_ends(ranges: Sequence[Range]) -> Range:
    [only] = ranges
    return None if only is None else (1 - only[1], 1 - only[0])


def _least_ends(ranges: Sequence[Range]) -> Range:
    return _not_ends([_less_ends([ranges[1], ranges[0]])])


def _equal_ends(ranges: Sequence[Range]) -> Range:
    first, second = ranges
    if first is None or second is None:
        return UNSURE
    if first[1] < second[0] or second[1] < first[0]:
        return FALSE
    return TRUE if first[0] == first[1] == second[0] == second[1] else UNSURE


def _among_ends(ranges: Sequence[Range]) -> Range:
    bounds = [_equal_ends([ranges[0], span]) for span in ranges[1:]]
    return TRUE if TRUE in bounds else FALSE if set(bounds) == {FALSE} else UNSURE


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is no truth value")
    return value


def _roots(ranges: Sequence[tuple[float, float]]) -> Sequence[float]:
    return _at_ends(math.sqrt)(ranges)


SUM = Operation(
    "+",
    _sum,
    _ends(lambda ranges: [sum(low for low, _ in ranges), sum(high for _, high in ranges)]),
    is_exact_in_any_order=True,
)
PRODUCT = Operation("*", _product, _ends(_product_ends), is_exact_in_any_order=True)
NEGATIVE = Operation("-", operator.neg, _ends(_at_ends(operator.neg)))
QUOTIENT = Operation("/", operator.truediv, _ends(lambda ranges: _quotient_ends(ranges, operator.truediv)))
WHOLE_QUOTIENT = Operation("//", operator.floordiv, _ends(lambda ranges: _quotient_ends(ranges, operator.floordiv)))
REMAINDER = Operation("%", operator.mod, _ends(_remainder_ends))
POWER = Operation("**", power, _ends(_power_ends))
LESS = Operation("<", operator.lt, _less_ends)
AT_MOST = Operation("<=", operator.le, _least_ends)
EQUAL = Operation("==", _same, _equal_ends, is_numeric=False)
AMONG = Operation(
    "in", lambda value, *others: any(_same(value, other) for other in others), _among_ends, is_numeric=False
)
NOT = Operation("not", lambda value: not _truth(value), _not_ends, is_numeric=False)

FUNCTIONS: dict[str, tuple[Operation, int, int]] = {  # with the fewest and most arguments
    "min": (Operation("min", min, _ends(lambda r: [min(x[0] for x in r), min(x[1] for x in r)])), 1, 20),
    "max": (Operation("max", max, _ends(lambda r: [max(x[0] for x in r), max(x[1] for x in r)])), 1, 20),
    "abs": (Operation("abs", abs), 1, 1),
    "ceil": (Operation("ceil", math.ceil, _ends(_at_ends(math.ceil))), 1, 1),
    "floor": (Operation("floor", math.floor, _ends(_at_ends(math.floor))), 1, 1),
    "log2": (Operation("log2", math.log2, _ends(_at_ends(math.log2))), 1, 1),
    "sqrt": (Operation("sqrt", math.sqrt, _ends(_roots)), 1, 1),
}
