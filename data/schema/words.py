"""Identifiers as people read them."""

ABBREVIATIONS = {name.lower(): name for name in ("AMD", "CPU", "GPU", "IO", "NFS", "TCP")}


def words(name: str) -> str:
    """An identifier as words: `cpu_contention` reads `CPU contention`."""
    return " ".join(ABBREVIATIONS.get(part, part) for part in name.split("_"))


def opening(name: str) -> str:
    """The same at the beginning of a sentence: `slow_input` reads `Slow input`."""
    text = words(name)
    return text[:1].upper() + text[1:]
