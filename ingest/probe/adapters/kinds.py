"""Whose a thing is, told by the names of its classes: no framework is imported to ask."""

from typing import Any


def is_kind(thing: Any, *names: str) -> bool:
    """Return whether one of its classes is one of these, `package.Class`, wherever in the package that stands."""
    return any(_is(base, name) for base in type(thing).__mro__ for name in names)


def _is(kind: type, name: str) -> bool:
    package, _, own = name.rpartition(".")
    return kind.__name__ == own and f"{kind.__module__}.".startswith(f"{package}.")
