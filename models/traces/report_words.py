"""The verdict on a run's traces, as one or two sentences."""

from collections.abc import Sequence

from crosswind.data.schema.answers.traces import TracedRank
from crosswind.models.traces.ranks import text_of

NOTED = 0.01  # of the span of all ranks: shorter waits are not worth a sentence
LARGE = 0.05  # of the time of ranks
UNITS = {1e9: "s", 1e6: "ms", 1e3: "µs"}  # by their nanoseconds


def verdict(ranks: Sequence[TracedRank], slowest: int | None, span_ns: int) -> str:
    """Return where the time goes, and which rank the others wait for."""
    whole = sum(rank.span_ns for rank in ranks) or 1
    totals: dict[str, int] = {}
    for rank in ranks:
        for part in rank.parts:
            totals[part.name] = totals.get(part.name, 0) + part.ns
    shares = sorted(((ns / whole, name) for name, ns in totals.items()), reverse=True)
    named = [f"{share:.0%} {name}" for share, name in shares if share >= LARGE]
    plural = "s" if len(ranks) > 1 else ""
    places = " and ".join(f"{place}{plural}" for place in sorted({rank.locations for rank in ranks}))
    first = f"On the {places} of {len(ranks)} rank{plural}: {', '.join(named) or 'nothing'}."
    return f"{first} {_waits(ranks, slowest, span_ns)}".rstrip()


def _waits(ranks: Sequence[TracedRank], slowest: int | None, span_ns: int) -> str:
    if len(ranks) < 2:
        return ""
    late = next((rank for rank in ranks if rank.rank == slowest), None)
    mean = 0.0 if late is None else late.caused_ns / (len(ranks) - 1)  # of each other rank
    if late is None or mean < NOTED * span_ns:
        return "No rank makes the others wait for long."
    met = sum(rank.times_last for rank in ranks)
    return (
        f"The others wait longest for {text_of([late.rank])}: {_time(mean)} each, {mean / span_ns:.0%} of the time; "
        f"it comes last at {late.times_last} of {met} collectives."
    )


def _time(ns: float) -> str:
    scale = next((scale for scale in UNITS if ns >= scale), 1e3)
    return f"{ns / scale:.3g} {UNITS[scale]}"
