"""The difference of two runs as text: words first, then kinds, the largest parts, and the sum."""

from collections.abc import Iterator

from crosswind.cli.text.output import printable, table
from crosswind.dashboards.difference_wording import change, kind_rows, side_words
from crosswind.dashboards.wording import count, seconds
from crosswind.data.schema.answers.trace_difference import DifferencePart, RunsDifference
from crosswind.models.traces.difference.words import part_words

PARTS = 12
NAME_WIDTH = 64


def difference_text(answer: RunsDifference, top: int = PARTS) -> str:
    """Return the difference, with so many parts."""
    return "\n".join(printable(line) for text in _texts(answer, top) for line in text.split("\n"))


def _texts(answer: RunsDifference, top: int) -> Iterator[str]:
    yield from (answer.sentence, "", *side_words(answer), "")
    rows = [(name, change(time), parts) for name, time, parts in kind_rows(answer)]
    rows.append(("sum = B - A", change(answer.seconds), ""))
    yield table(("kind", "time a step [90 % interval]", "parts"), rows)
    shown = [part for part in answer.parts if part.seconds.value][:top]
    if shown:
        yield from ("", f"Largest of {count(len(answer.parts), 'part')}:")
        yield table(
            ("part", "time a step [90 % interval]", "A", "B"), [_row(part, answer.first.over) for part in shown]
        )
    yield from (f"note: {note}" for note in answer.notes)


def _row(part: DifferencePart, over: str) -> tuple[str, ...]:
    name = part_words(part, over)
    name = name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 3]}..."
    return name, change(part.seconds), seconds(part.first_seconds), seconds(part.second_seconds)
