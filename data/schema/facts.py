"""Facts about the system and the software of a run, whichever source stated them."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from crosswind.data.schema.errors import InvalidInputError

TEXT_MAX = 1000  # characters
COUNT_MAX = 10_000_000
BYTES_MAX = 1e18


def _about(description: str) -> dict[str, str]:
    """Metadata of a field that OpenAPI describes so; `answers.fields` lies above this module."""
    return {"description": description}


@dataclass(frozen=True)
class Facts:
    """Facts of a run, in the words of their source; None where it does not state them, never a guess.

    Counts are whole numbers, `accelerators_per_node` 0 where processors alone compute. The run's date is its start.
    Raises: InvalidInputError naming the fact, its value and what was expected.
    """

    accelerator: str | None = field(default=None, metadata=_about("model, such as NVIDIA H100 80GB HBM3"))
    accelerators: int | None = field(default=None, metadata=_about("in all nodes"))
    accelerators_per_node: int | None = field(default=None, metadata=_about("0 where processors alone compute"))
    accelerator_memory_bytes: float | None = field(default=None, metadata=_about("of one accelerator"))
    node_count: int | None = None
    processor: str | None = field(default=None, metadata=_about("model of the node's processors"))
    processors_per_node: int | None = field(default=None, metadata=_about("sockets"))
    device_link: str | None = field(default=None, metadata=_about("between accelerators of a node, such as NVLink"))
    interconnect: str | None = field(default=None, metadata=_about("between nodes, such as InfiniBand NDR"))
    framework: str | None = field(default=None, metadata=_about("such as PyTorch"))
    framework_version: str | None = None
    cuda: str | None = field(default=None, metadata=_about("version"))
    rocm: str | None = field(default=None, metadata=_about("version"))
    nccl: str | None = field(default=None, metadata=_about("version of NCCL or RCCL"))
    driver: str | None = field(default=None, metadata=_about("version of the accelerators' driver"))

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (problem := _problem(name, value)):
                raise InvalidInputError(f"fact {name} is {value!r:.80}, expected {problem}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Make facts of a mapping; None counts as missing. Raises: InvalidInputError, also for an unknown name."""
        for name in values:
            if name not in NAMES:
                raise InvalidInputError(f"fact {name!r:.60} is unknown, expected one of {', '.join(NAMES)}")
        return cls(**values)

    @classmethod
    def of_valid(cls, values: Mapping[str, Any]) -> Self:
        """Make facts of those values that can be facts; the others are missing."""
        valid = {name: value for name, value in values.items() if value is not None and not _problem(name, value)}
        return cls(**valid)

    @property
    def given(self) -> dict[str, str | int | float]:
        """The facts that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def over(self, others: "Facts") -> "Facts":
        """Return these facts, and the others' where these are None."""
        if others == NONE_GIVEN:
            return self
        if self == NONE_GIVEN:
            return others
        return type(self)(**{**vars(others), **self.given})


NONE_GIVEN = Facts()
NAMES: tuple[str, ...] = tuple(one.name for one in fields(Facts))
COUNTS = ("accelerators", "accelerators_per_node", "node_count", "processors_per_node")
BYTES = ("accelerator_memory_bytes",)
NUMBERS = (*COUNTS, *BYTES)


def _problem(name: str, value: object) -> str:
    """Return what was expected of a value, empty where it is that."""
    if name in COUNTS:
        least = 0 if name == "accelerators_per_node" else 1
        is_count = isinstance(value, int) and not isinstance(value, bool) and least <= value <= COUNT_MAX
        return "" if is_count else f"a whole number from {least} to {COUNT_MAX}"
    if name in BYTES:
        is_size = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= BYTES_MAX
        return "" if is_size else f"a number of bytes above 0, {BYTES_MAX:.0e} at most"
    is_text = isinstance(value, str) and 0 < len(value) <= TEXT_MAX and value.isprintable()
    return "" if is_text else f"a printable text of 1 to {TEXT_MAX} characters"


def text_fact(value: object) -> str | None:
    """Return a source's text as a fact: printable and cut to size; None for no text, and for words that say nothing."""
    if not isinstance(value, str):
        return None
    printable = "".join(letter if letter.isprintable() else " " for letter in value).strip()[:TEXT_MAX].strip()
    return None if printable.lower() in _NOTHING else printable


def count_fact(value: object, *, least: int = 1) -> int | None:
    """Return a count as a fact, also from its decimal digits; None for anything else."""
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        return None
    return int(text) if least <= int(text) <= COUNT_MAX else None


def bytes_fact(text: object) -> float | None:
    """Return the bytes of a text such as `80 GB` or `32GiB HBM2`; None where no unit follows the first number."""
    match = _BYTES.match(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    size = float(match[1]) * _UNITS[match[2].lower()]
    return size if math.isfinite(size) and 0 < size <= BYTES_MAX else None


def version_in(text: str) -> str | None:
    """Return the first version number in a text, `2.4.1` of `PyTorch v2.4.1a0`; None without one."""
    match = _VERSION.search(text)
    return match[0] if match else None


_NOTHING = ("", "n/a", "na", "none", "-", "todo", "tbd", "unknown", "null")
_VERSION = re.compile(r"\d+(?:\.\d+)+|(?<![A-Za-z\d.])\d+(?![A-Za-z\d])")
_BYTES = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?B)\b", re.IGNORECASE)
_UNITS = {
    f"{prefix}{infix}b": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for infix, base in (("", 1000), ("i", 1024))
}
