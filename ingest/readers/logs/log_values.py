"""Numbers, settings, names and times in training logs."""

import re
from decimal import Decimal
from functools import lru_cache

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import Parameter
from crosswind.ingest.readers.clock import Clock


def setting(text: str) -> Parameter | None:
    """Return the value of a setting in a log; None for one that is not set."""
    text = text.strip()
    if text in ("None", "", "null"):
        return None
    if text in ("True", "False"):
        return text == "True"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if (
        re.fullmatch(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?", text)
        and (value := finite(text)) is not None
    ):
        return value
    return text[:500]


def moment(clock: Clock, date: str, time: str, fraction: str | None) -> int:
    """Return a date YYYY-MM-DD and a time with decimals in ns UTC. Raises: MalformedError."""
    whole = clock.nanoseconds("time", f"{date}T{time}")
    if whole is None:
        raise MalformedError(f"{date} {time} is no time; expected YYYY-MM-DD HH:MM:SS")
    return whole + int((fraction or "0")[:9].ljust(9, "0"))


@lru_cache(maxsize=1000)
def snake(text: str) -> str:
    """Return a log's label of a value as a name in snake case."""
    return "_".join(re.findall(r"[a-z0-9]+", text.lower()))[:100]


def finite(text: str, places: int = 0) -> float | None:
    """Return a number in a log, its point moved by so many places; None for nan and inf.

    Raises: MalformedError.
    """
    try:
        value = float(Decimal(text).scaleb(places)) if places else float(text)
    except (ValueError, ArithmeticError) as error:
        raise MalformedError(f"{text[:40]!r} is no number; expected one such as 1.5 or 1E-05") from error
    return value if abs(value) < float("inf") else None
