"""The verdict on a run's traces, as a few sentences."""

from collections.abc import Sequence

from crosswind.data.schema.answers.traces import NOTED, TracedRank
from crosswind.data.schema.steps import NANOSECOND
from crosswind.data.schema.words import duration, percent
from crosswind.models.traces.late_rank import LateRank
from crosswind.models.traces.pipeline import Pipeline
from crosswind.models.traces.ranks import text_of

LARGE = 0.05  # of the time of ranks
UNEQUAL = 0.05  # of the mean computation of stages, by which the longest is over it


def verdict(ranks: Sequence[TracedRank], span_ns: int, late: LateRank | None, stages: Pipeline | None = None) -> str:
    """Return where the time goes, which rank the others wait for, and which stage of a pipeline is the longest."""
    whole = sum(rank.span_ns for rank in ranks) or 1
    totals: dict[str, int] = {}
    for rank in ranks:
        for part in rank.parts:
            totals[part.name] = totals.get(part.name, 0) + part.ns
    shares = sorted(((ns / whole, name) for name, ns in totals.items()), reverse=True)
    named = [f"{percent(share)} {name}" for share, name in shares if share >= LARGE]
    plural = "s" if len(ranks) > 1 else ""
    places = " and ".join(f"{place}{plural}" for place in sorted({rank.locations for rank in ranks}))
    first = f"On the {places} of {len(ranks)} rank{plural}: {', '.join(named) or 'nothing'}."
    return " ".join(filter(None, (first, _stage(stages), _waits(ranks, span_ns, late))))


def _waits(ranks: Sequence[TracedRank], span_ns: int, late: LateRank | None) -> str:
    if len(ranks) < 2:
        return ""
    of = next((rank for rank in ranks if late is not None and rank.rank == late.rank), None)
    mean = 0.0 if of is None else of.caused_ns / (len(ranks) - 1)  # of each other rank
    if late is None or of is None or mean < NOTED * span_ns:
        return "No rank makes the others wait for long."
    met = sum(rank.times_last for rank in ranks)
    return (
        f"The others wait longest for {text_of([of.rank])}: {duration(mean * NANOSECOND)} each, "
        f"{percent(mean / span_ns)} of the time; it comes last at {of.times_last} of "
        f"{met} collectives. {_saving(late, mean)}"
    ).rstrip()


def _saving(late: LateRank, mean_wait_ns: float) -> str:
    """Return what a replay with the peers' work says about a rank that is waited for."""
    if late.saved_share is None:
        return ""
    saved = f"with the work of its peers the run would take {percent(max(late.saved_share, 0.0))} less time"
    if late.saved_share >= NOTED:
        return f"{saved[:1].upper()}{saved[1:]}."
    if late.begins_after_ns >= mean_wait_ns / 2:
        after = f"its trace begins {duration(late.begins_after_ns * NANOSECOND)} after the median of the others"
        return f"It is late, not slow: {after}, and {saved}."
    return f"It is not slow by itself: {saved}."


def _stage(stages: Pipeline | None) -> str:
    """Return a sentence on a pipeline whose stages are unequal."""
    times = [] if stages is None else [one.compute_ns for one in stages.stages]
    mean = sum(times) / len(times) if times else 0.0
    over = max(times, default=0.0) - mean
    if stages is None or over < UNEQUAL * mean or over < NOTED * stages.span_ns:
        return ""
    last = ", the last one," if stages.longest_stage == stages.stages[-1].stage else ""
    return (
        f"Of the pipeline's {len(times)} stages, stage {stages.longest_stage}{last} computes longest, "
        f"{percent(over / mean)} over their mean; its ranks are not slow for that."
    )
