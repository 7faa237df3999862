"""Expressions over named values, such as `dp * tp * pp == ranks`, as people write them in study files.

The text is read into a syntax tree, which may hold only the nodes that are listed here: numbers, texts, truth values,
names, arithmetic, comparisons, `and`, `or`, `not`, `in (...)`, and a few functions. Nothing is ever executed.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space import operations as op
from crosswind.models.tuner.space.formula import (
    ABSENT,
    Constant,
    Formula,
    Missing,
    Undefined,
    Value,
    Values,
    Variable,
    applied,
    joined,
)

LENGTH_MAX = 1000  # characters
DEPTH_MAX = 100
TRUTHS = {"true": True, "false": False}  # as JSON and YAML write them
EXPECTED = (
    f"expected numbers, texts, names, + - * / // % **, comparisons, and, or, not, in (...), {', '.join(op.FUNCTIONS)}"
)

_BINARY: Mapping[type[ast.operator], op.Operation] = {
    ast.Add: op.SUM,
    ast.Mult: op.PRODUCT,
    ast.Div: op.QUOTIENT,
    ast.FloorDiv: op.WHOLE_QUOTIENT,
    ast.Mod: op.REMAINDER,
    ast.Pow: op.POWER,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Formula, Formula], Formula]] = {
    ast.Lt: lambda a, b: applied(op.LESS, [a, b]),
    ast.LtE: lambda a, b: applied(op.AT_MOST, [a, b]),
    ast.Gt: lambda a, b: applied(op.LESS, [b, a]),
    ast.GtE: lambda a, b: applied(op.AT_MOST, [b, a]),
    ast.Eq: lambda a, b: applied(op.EQUAL, [a, b]),
    ast.NotEq: lambda a, b: applied(op.NOT, [applied(op.EQUAL, [a, b])]),
}


@dataclass(frozen=True)
class Expression:
    """An expression: its text, and its formula."""

    text: str
    formula: Formula = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: object) -> Self:
        """Return the expression of a text. Raises: InvalidInputError that quotes the text and what is wrong."""
        if not isinstance(text, str) or not text.strip() or len(text) > LENGTH_MAX:
            raise InvalidInputError(f"expression {str(text)[:80]!r}: expected 1 to {LENGTH_MAX} characters of text")
        if "\\" in text:
            raise InvalidInputError(f"expression {text!r} holds a backslash, {EXPECTED}")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", None) or str(error) or type(error).__name__
            raise InvalidInputError(f"expression {text!r} cannot be read ({reason}), {EXPECTED}") from None
        try:
            return cls(text, _formula(tree, 0))
        except (InvalidInputError, RecursionError) as error:
            raise InvalidInputError(f"expression {text!r}: {error}") from None

    @property
    def names(self) -> frozenset[str]:
        """The names whose values it needs."""
        return self.formula.names

    def given(self, values: Values) -> Self:
        """Return the expression with values or formulas filled in; ABSENT where a parameter does not apply."""
        return type(self)(self.text, self.formula.given(values))

    def outcome(self, values: Mapping[str, Parameter | Missing]) -> Value:
        """Return its value, ABSENT where it needs a parameter that does not apply, or Undefined with the reason.

        Names without a value count as ABSENT.
        """
        left = self.formula.given({name: values.get(name, ABSENT) for name in self.names})
        assert isinstance(left, Constant)  # noqa: S101  every name has got a value
        return left.value

    def value(self, values: Mapping[str, Parameter]) -> Parameter:
        """Return its value. Raises: InvalidInputError when a name has none, or the expression has none (1 / 0)."""
        missing = sorted(self.names - values.keys())
        if missing:
            raise InvalidInputError(
                f"expression {self.text!r} needs {missing[0]}, expected it among {', '.join(values) or 'no values'}"
            )
        odd = [name for name in sorted(self.names) if not _is_plain(values[name])]
        if odd:
            raise InvalidInputError(
                f"expression {self.text!r}: {odd[0]} is {values[odd[0]]!r}, expected a finite value"
            )
        value = self.outcome(values)
        if isinstance(value, Undefined | Missing):
            reason = value.reason if isinstance(value, Undefined) else "it hangs on a parameter that does not apply"
            assignments = ", ".join(f"{name} = {values[name]!r}" for name in sorted(self.names))
            raise InvalidInputError(
                f"expression {self.text!r} has no value{' at ' + assignments if assignments else ''}: {reason}"
            )
        return value

    def __str__(self) -> str:
        return self.text


def _is_plain(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and abs(value) <= op.MAGNITUDE_MAX)


def _formula(tree: ast.expr, depth: int) -> Formula:
    if depth > DEPTH_MAX:
        raise InvalidInputError(f"it is nested more than {DEPTH_MAX} deep, expected less")
    if isinstance(tree, ast.Constant):
        return Constant(_literal(tree.value))
    if isinstance(tree, ast.Name):
        return Constant(TRUTHS[tree.id]) if tree.id in TRUTHS else Variable(tree.id)
    make = _MADE.get(type(tree))
    if make is None:
        raise InvalidInputError(f"it holds {ast.unparse(tree)[:80]!r}, {EXPECTED}")
    return make(tree, depth)


def _literal(value: object) -> Parameter:
    if isinstance(value, str | int | float) and _is_plain(value):
        return value
    raise InvalidInputError(f"it holds {repr(value)[:40]}, expected numbers up to {op.MAGNITUDE_MAX:g} and texts")


def _binary(tree: ast.BinOp, depth: int) -> Formula:
    first, second = _formula(tree.left, depth + 1), _formula(tree.right, depth + 1)
    if isinstance(tree.op, ast.Sub):
        return _flat(op.SUM, [first, applied(op.NEGATIVE, [second])])
    operation = _BINARY.get(type(tree.op))
    if operation is None:
        raise InvalidInputError(f"it holds {ast.unparse(tree)[:80]!r}, {EXPECTED}")
    return _flat(operation, [first, second])


def _flat(operation: op.Operation, parts: list[Formula]) -> Formula:
    """Return the operation; where its first part is the same one, flattened: (a + b) + c is a + b + c."""
    inner = parts[0]
    if operation.is_exact_in_any_order and getattr(inner, "operation", None) == operation:
        parts = [*getattr(inner, "parts", ()), *parts[1:]]
    return applied(operation, parts)


def _unary(tree: ast.UnaryOp, depth: int) -> Formula:
    part = _formula(tree.operand, depth + 1)
    match tree.op:
        case ast.Not():
            return applied(op.NOT, [part])
        case ast.USub():
            return applied(op.NEGATIVE, [part])
        case ast.UAdd():
            return applied(op.SUM, [part])
    raise InvalidInputError(f"it holds {ast.unparse(tree)[:80]!r}, {EXPECTED}")


def _comparison(tree: ast.Compare, depth: int) -> Formula:
    """Return a chain such as `1 < a <= b`: every neighbouring pair must hold."""
    pairs, left = [], tree.left
    for kind, right in zip(tree.ops, tree.comparators, strict=True):
        pairs.append(_compared(left, kind, right, depth + 1))
        left = right
    return pairs[0] if len(pairs) == 1 else joined(False, pairs)


def _compared(left: ast.expr, kind: ast.cmpop, right: ast.expr, depth: int) -> Formula:
    if isinstance(kind, ast.In | ast.NotIn):
        if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
            raise InvalidInputError(f"it looks in {ast.unparse(right)[:80]!r}, expected a list such as (1, 2, 4)")
        membership = applied(op.AMONG, [_formula(operand, depth) for operand in (left, *right.elts)])
        return membership if isinstance(kind, ast.In) else applied(op.NOT, [membership])
    make = _COMPARED.get(type(kind))
    if make is None:
        raise InvalidInputError("it compares by 'is', expected ==, !=, <, <=, >, >= or in (...)")
    return make(_formula(left, depth), _formula(right, depth))


def _call(tree: ast.Call, depth: int) -> Formula:
    called = tree.func.id if isinstance(tree.func, ast.Name) else ""
    function = op.FUNCTIONS.get(called)
    if function is None or tree.keywords:
        raise InvalidInputError(f"it calls {ast.unparse(tree)[:80]!r}, expected only {', '.join(op.FUNCTIONS)}")
    operation, fewest, most = function
    if not fewest <= len(tree.args) <= most:
        raise InvalidInputError(f"{called} has {len(tree.args)} arguments, expected {fewest} to {most}")
    return applied(operation, [_formula(argument, depth + 1) for argument in tree.args])


def _junction(tree: ast.BoolOp, depth: int) -> Formula:
    return joined(isinstance(tree.op, ast.Or), [_formula(operand, depth + 1) for operand in tree.values])


_MADE: Mapping[type[ast.expr], Callable[..., Formula]] = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _junction,
    ast.Compare: _comparison,
    ast.Call: _call,
}
