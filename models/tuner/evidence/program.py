"""Programs as their command lines show them: two are the same if the name and most of the options are."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.data.schema.command.arguments import arguments_of
from crosswind.data.schema.command.launchers import started_by

ALIKE = 0.5  # of the options of both, from which on they are those of one program


@dataclass(frozen=True)
class Program:
    """A program's name without folder, launcher and suffix, and the names of its options; values do not count."""

    name: str
    options: frozenset[str]

    def is_like(self, other: "Program") -> bool:
        """Return whether the other one is the same program, perhaps with a few other options."""
        every = self.options | other.options
        return self.name == other.name and len(self.options & other.options) >= ALIKE * len(every)


def program_of(command: Sequence[str]) -> Program | None:
    """Return the program of a command, with or without `{parameter}` in place of values; None without a command."""
    if not command:
        return None
    started = started_by(command)
    named = (argument for argument in arguments_of(started.words) if argument.is_named)
    return Program(started.name, frozenset(argument.name for argument in named))
