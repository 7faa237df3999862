"""Attributes of other people's modules and classes that are replaced for a while."""

from typing import Any


class Patches:
    """The replaced attributes, to be put back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute that the owner itself has."""
        self._replaced.append((owner, name, vars(owner)[name], value))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Puts everything back, except what somebody else has replaced after us: that would undo theirs."""
        while self._replaced:
            owner, name, before, value = self._replaced.pop()
            if vars(owner).get(name) is value:
                setattr(owner, name, before)
