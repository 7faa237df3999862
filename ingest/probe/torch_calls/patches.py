"""Temporary replacement of attributes of other packages' modules and classes."""

from typing import Any


class Patches:
    """The replaced attributes, for restoring."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute that the owner itself has."""
        self._replaced.append((owner, name, vars(owner)[name], value))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Restore all attributes, except those that somebody else has replaced after us: that would undo theirs."""
        while self._replaced:
            owner, name, before, value = self._replaced.pop()
            if vars(owner).get(name) is value:
                setattr(owner, name, before)
