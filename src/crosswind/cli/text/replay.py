"""A run's replay with equal ranks, as a terminal shows it."""

from collections.abc import Sequence

from crosswind.cli.text.output import printable, table
from crosswind.dashboards.wording import count, percent, seconds, times
from crosswind.data.schema.answers.stragglers import ReplayedPart, RunReplay, SequenceImbalance

HEADINGS = ("", "alone as measured", "mended")
EVEN = 0.005  # a slowdown below half a percent is none


def replay_text(answer: RunReplay, limit: int) -> str:
    """Return S and who makes it, the worst ranks and stages, and warnings."""
    lines = [f"{printable(answer.run_id)} ({count(answer.ranks, 'rank')}): {_verdict(answer)}"]
    for noun, parts in (("stage", answer.by_stage), ("rank", answer.by_rank)):
        if parts:
            lines += ["", table((f"worst {noun}s", *HEADINGS[1:]), [_row(noun, part) for part in parts[:limit]])]
    lines += ["", *_sequences(answer.sequence)]
    lines.append(
        f"from: {count(answer.steps, 'step')} of {seconds(answer.step_seconds)}, by {answer.basis} of the ranks"
    )
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])


def _verdict(answer: RunReplay) -> str:
    saved = 1 - 1 / answer.slowdown_ratio
    if answer.slowdown_ratio < 1 + EVEN:
        return "S = 1.00: with equal ranks it would take as long"
    return f"S = {answer.slowdown_ratio:.3f}: with equal ranks it would take {percent(saved)} less time{_who(answer)}"


def _who(answer: RunReplay) -> str:
    """Return the stage or rank that alone makes most of the slowdown; empty where none makes half of it."""
    for noun, parts in (("stage", answer.by_stage), ("rank", answer.by_rank)):
        if _explains(parts, answer.slowdown_ratio):
            return f"; {noun} {parts[0].number} alone makes it {times(parts[0].alone_ratio)}"
    return ""


def _explains(parts: Sequence[ReplayedPart], whole: float) -> bool:
    return bool(parts) and parts[0].alone_ratio - 1 >= (whole - 1) / 2


def _row(noun: str, part: ReplayedPart) -> tuple[str, ...]:
    return f"{noun} {part.number}", times(part.alone_ratio), _gain(part.mended_ratio)


def _gain(mended_ratio: float | None) -> str:
    """Return how much less time the run would take with a part as its peers; empty where that is not known."""
    if mended_ratio is None:
        return ""
    return "no gain" if mended_ratio < 1 + EVEN else f"{percent(1 - 1 / mended_ratio)} less time"


def _sequences(sequence: SequenceImbalance | None) -> list[str]:
    if sequence is None:
        return []
    verdict = "of unequal lengths" if sequence.is_imbalanced else "no sign of unequal lengths"
    return [
        f"sequences: {verdict} (forward and backward times of {sequence.micro_batches} micro-batches "
        f"correlate by {sequence.correlation:.2f}; computation varies by {percent(sequence.spread_ratio)})"
    ]
