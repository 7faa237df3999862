"""Fields of answers: their descriptions, and moments as text beside their nanoseconds."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

NANOSECONDS = 1_000_000_000
_TEXT_OF = "text_of"


def about(description: str) -> dict[str, str]:
    """Metadata of a field that OpenAPI describes so."""
    return {"description": description}


def text_of(nanoseconds: str) -> dict[str, str]:
    """Metadata of a field that holds the moment of another field, in nanoseconds UTC, as text; `fill_texts` sets it."""
    return {_TEXT_OF: nanoseconds}


def fill_texts(answer: Any) -> None:
    """Set the fields of a frozen dataclass that hold moments as text."""
    for field in fields(answer):
        if source := field.metadata.get(_TEXT_OF):
            object.__setattr__(answer, field.name, rfc3339(getattr(answer, source)))


def rfc3339(ns: int | None) -> str | None:
    """Nanoseconds UTC as `2026-01-02T03:04:05.000000006Z`; None where unknown or beyond the calendar."""
    if ns is None:
        return None
    try:
        moment = datetime.fromtimestamp(ns // NANOSECONDS, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % NANOSECONDS:09d}Z"
