"""The end of a study's hours, as its details say; read on plain nodes too, where nothing but Python is."""

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Study

HOURS = "hours"  # a word of a study's `details`
HOURS_MAX = 100 * 366 * 24.0
HOUR_NS = 3600 * 1_000_000_000


def ends_ns(study: Study) -> int | None:
    """Return when the hours since the study's creation are over; None without a limit. Raises: InvalidInputError."""
    hours = number_told(study, HOURS, HOURS_MAX)
    return None if hours is None else study.created_ns + round(hours * HOUR_NS)


def number_told(study: Study, word: str, most: float) -> float | None:
    """The number above 0 that the study's details tell by this word. Raises: InvalidInputError for another value."""
    value = study.details.get(word)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise InvalidInputError(f"details: {word} is {value!r:.80}, expected a number above 0 up to {most:g}")
    return float(value)
