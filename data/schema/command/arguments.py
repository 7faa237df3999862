"""The arguments on a program's command line: options, `name=value` words as of Hydra, and other words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

OPTION = re.compile(r"--?[A-Za-z][\w./@+-]*")
ASSIGNED = re.compile(r"(?P<name>[~+]{0,2}[A-Za-z_][\w./@-]*)=(?P<value>.*)", re.DOTALL)
INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
TRUTHS = {"true": True, "false": False}
MAX_NAME, MAX_VALUE, MAX_ARGUMENTS = 100, 1000, 200


@dataclass(frozen=True)
class Argument:
    """One argument: an option's name without dashes, a Hydra key, or `argument1` for a word without a name."""

    name: str
    text: str | None  # None for an option without a value
    is_named: bool = True

    @property
    def value(self) -> bool | int | float | str:
        """The value as a number or boolean where it reads as one; True for an option without a value."""
        return True if self.text is None else value_of(self.text)


def value_of(text: str) -> bool | int | float | str:
    """Return a word as the number or boolean that it reads as, else as it is, at most 1000 characters."""
    if INTEGER.fullmatch(text):
        return int(text)
    if NUMBER.fullmatch(text) and not _has_leading_zero(text):
        return float(text)
    return TRUTHS.get(text.lower(), text[:MAX_VALUE])


def arguments_of(words: Sequence[str]) -> list[Argument]:
    """Return a program's arguments in their order, at most 200; values of an option that is repeated are joined."""
    joined: dict[str, Argument] = {}
    for argument in _arguments(words):
        if before := joined.get(argument.name):
            text = f"{before.text or ''} {argument.text or ''}".strip()
            joined[argument.name] = Argument(argument.name, text, argument.is_named)
        elif len(joined) < MAX_ARGUMENTS:
            joined[argument.name] = argument
    return list(joined.values())


def _arguments(words: Sequence[str]) -> Iterator[Argument]:
    place, unnamed = 0, 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "--":
            continue
        name, equals, text = word.partition("=")
        if _is_option(name):
            values = [text] if equals else _values_from(words, place)
            place += 0 if equals else len(values)
            yield Argument(_option_name(name), " ".join(values) if values else None)
        elif match := ASSIGNED.fullmatch(word):
            yield Argument(match["name"].lstrip("+")[:MAX_NAME], match["value"])
        else:
            unnamed += 1
            yield Argument(f"argument{unnamed}", word, is_named=False)


def _values_from(words: Sequence[str], place: int) -> list[str]:
    """Return the values of an option whose name is just before `place`: one word, or a row of numbers."""
    if place == len(words) or _is_option(words[place].partition("=")[0]) or words[place] == "--":
        return []
    values = [words[place]]
    if NUMBER.fullmatch(words[place]):
        for word in words[place + 1 :]:
            if not NUMBER.fullmatch(word):
                break
            values.append(word)
    return values


def _is_option(word: str) -> bool:
    return OPTION.fullmatch(word) is not None


def _option_name(word: str) -> str:
    return word.lstrip("-").replace("-", "_")[:MAX_NAME]


def _has_leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
