"""Printable forms of names chosen by the kernel, drivers and administrators."""

from typing import Final

MAX_LENGTH: Final = 200


def printable(raw: bytes) -> str:
    """Return the text with unprintable characters escaped, at most 200 characters long."""
    text = raw.decode("utf-8", "backslashreplace")
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text[:MAX_LENGTH]
