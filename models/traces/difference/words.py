"""A difference of two runs as one or two sentences."""

import math

from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.trace_difference import DifferencePart, PartKind, RunsDifference
from crosswind.data.schema.words import duration, percent

SAID = 3  # parts at most
LEAST = 0.1  # of the difference, that a part must be to be said
PHRASES = {
    PartKind.ADDED: "{} added",
    PartKind.GONE: "{} gone",
    PartKind.SLOWER: "{} slower",
    PartKind.FASTER: "{} faster",
    PartKind.ALIKE: "{}, by no more than it varies",
    PartKind.WAIT: "wait in {}",
    PartKind.TRANSFER: "transfer of {}",
    PartKind.MEMORY: "memory copies of {}",
    PartKind.HOST: "host-bound before {}",
    PartKind.IDLE: "idle before {}",
}
PHASES = {PartKind.HOST: "time in {}"}  # of a run without traces


def sentence(answer: RunsDifference) -> str:
    """Return by how much B's step is longer or shorter than A's, and by what."""
    change, usual = answer.seconds, answer.first.step_seconds
    size = f"{duration(abs(change.value))}{f' ({percent(abs(change.value) / usual)})' if usual else ''}"
    way = "longer" if change.value > 0 else "shorter"
    text = f"B's step is {size} {way}{_bounds(change)}"
    if change.low <= 0 <= change.high:
        return f"No sure difference: {text}."
    said = [part for part in answer.parts if _is_said(part, change)][:SAID]
    return f"{text}; {', '.join(_said(part, answer.first.over) for part in said)}." if said else f"{text}."


def part_words(part: DifferencePart, over: str) -> str:
    """Return a part in words, of runs whose time is split over that: `rank 1's aten::addmm slower`."""
    name = part.operator[-1] if part.operator else "the end of a step"
    phrases = PHRASES | (PHASES if over == "probe" else {})
    of = "" if part.rank is None else f"rank {part.rank}'s "
    return phrases[part.kind].format(of + name)


def _bounds(change: Interval) -> str:
    if math.isnan(change.low):
        return ""
    return f" [90 % interval {duration(change.low)} to {duration(change.high)}]"


def _is_said(part: DifferencePart, change: Interval) -> bool:
    """Return whether a part is large, and surely goes the way of the whole."""
    of = part.seconds
    is_open = math.isnan(of.low) or not of.low <= 0 <= of.high
    return is_open and of.value * change.value > 0 and abs(of.value) >= LEAST * abs(change.value)


def _said(part: DifferencePart, over: str) -> str:
    alone = "" if part.rank_seconds is None else f" ({duration(abs(part.rank_seconds))} there)"
    return f"{duration(abs(part.seconds.value))} of it: {part_words(part, over)}{alone}"
