"""Recognition of frameworks' objects by the names of their classes, without importing a framework."""

from typing import Any


def is_kind(thing: Any, *names: str) -> bool:
    """Return whether one of its classes is one of these, `package.Class`, wherever in the package that is."""
    return any(_is(base, name) for base in type(thing).__mro__ for name in names)


def _is(kind: type, name: str) -> bool:
    package, _, own = name.rpartition(".")
    return kind.__name__ == own and f"{kind.__module__}.".startswith(f"{package}.")
