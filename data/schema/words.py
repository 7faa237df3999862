"""Identifiers as people read them."""

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns"))  # of times, by their seconds
ABBREVIATIONS = {name.lower(): name for name in ("AMD", "CPU", "GPU", "IO", "NFS", "TCP")}


def words(name: str) -> str:
    """An identifier as words: `cpu_contention` reads `CPU contention`."""
    return " ".join(ABBREVIATIONS.get(part, part) for part in name.split("_"))


def opening(name: str) -> str:
    """The same at the beginning of a sentence: `slow_input` reads `Slow input`."""
    return capital(words(name))


def capital(text: str) -> str:
    """A text with its first letter in capitals."""
    return text[:1].upper() + text[1:]


def percent(ratio: float) -> str:
    """A finite ratio as percent: `92 %`, `4.3 %`, `0.12 %`."""
    hundredfold = ratio * 100
    return f"{hundredfold:.0f} %" if abs(hundredfold) >= 9.95 else f"{hundredfold:.2g} %"


def duration(seconds: float) -> str:
    """A time in the unit that suits it, with three digits: `379 \u00b5s`, `1.25 s`."""
    scale, unit = next((one for one in UNITS if abs(seconds) >= one[0]), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def phase_words(phase: str) -> str:
    """A phase in a sentence: `comm` reads `communication`."""
    return {"comm": "communication"}.get(phase, phase)
