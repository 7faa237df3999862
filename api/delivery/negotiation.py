"""Preferences of clients in fields such as Accept and Accept-Encoding."""

import math


def preferences(field: str) -> dict[str, float]:
    """Return the values of such a field, in lower case, with their qualities from 0 to 1. Source: RFC 9110, 12.4.2."""
    qualities: dict[str, float] = {}
    for part in field.lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        quality = next((text.removeprefix("q=") for text in parameters if text.startswith("q=")), "1")
        if name:
            qualities[name] = _number(quality)
    return qualities


def _number(quality: str) -> float:
    try:
        number = float(quality)
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(number) else min(max(number, 0.0), 1.0)
