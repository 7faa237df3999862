"""One operation of the description, as the parts that complete it see it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """One operation of the document; `name` is METHOD PATH, and `facts` may be changed."""

    name: str
    facts: dict[str, Any]

    @property
    def method(self) -> str:
        """The method in upper case."""
        return self.name.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with the names of its parameters in braces."""
        return self.name.partition(" ")[2]

    @property
    def answers(self) -> Mapping[str, dict[str, Any]]:
        """The answers to what was done, by status."""
        return {status: answer for status, answer in self.facts["responses"].items() if status < "300"}

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters, which may be added to."""
        parameters: list[dict[str, Any]] = self.facts.setdefault("parameters", [])
        return parameters


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield every operation of a document."""
    for path, methods in document["paths"].items():
        for method, facts in methods.items():
            yield Operation(f"{method.upper()} {path}", facts)
