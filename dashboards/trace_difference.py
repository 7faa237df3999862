"""The difference of two runs as one file without requests: a waterfall of the kinds, and a table of the parts."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate

from crosswind.dashboards.assets import asset
from crosswind.dashboards.difference_wording import change, kind_rows, side_words
from crosswind.dashboards.palette import BLUE, GREEN, ORANGE, PEER
from crosswind.dashboards.wording import seconds
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.trace_difference import DifferencePart, RunsDifference
from crosswind.models.traces.difference.words import part_words

PARTS = 200  # the largest, on the page
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { display: block; max-width: 72rem; margin: 0 auto; padding: 24px; }
section { margin-top: 32px; overflow-x: auto; }
.bar { position: relative; height: 18px; min-width: 20rem; }
.bar span { position: absolute; height: 100%; min-width: 1px; }
td { overflow-wrap: anywhere; }
"""
HEADINGS = ("part", "time a step", "A", "B", "within", "kernels of A", "kernels of B")


def difference_page(answer: RunsDifference) -> str:
    """Return the page."""
    rows = [_row(part, answer.first.over) for part in answer.parts if part.seconds.value][:PARTS]
    parts = [
        f"<h1>{escape(answer.sentence)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in side_words(answer)),
        f"<section><h2>From A to B</h2>{_waterfall(answer)}</section>",
        f"<section><h2>Largest parts</h2>{_table(HEADINGS, rows)}</section>" if rows else "",
        *(f"<p>{escape(note)}</p>" for note in answer.notes),
    ]
    css = asset("crosswind.css").body.decode()
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>A and B</title><style>{css}{STYLE}</style>'
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>{"".join(parts)}</main></body></html>\n'


def _waterfall(answer: RunsDifference) -> str:
    """Return a bar for each kind, from where the one before it ended."""
    rows = [(name, interval) for name, interval, _ in kind_rows(answer)]
    edges = list(accumulate((interval.value for _, interval in rows), initial=0.0))
    low, span = min(edges), (max(edges) - min(edges)) or 1.0
    bars = [
        (escape(name), escape(change(interval)), _bar((start - low) / span, interval, span))
        for start, (name, interval) in zip(edges, rows, strict=False)
    ]
    whole = (escape("B - A"), escape(change(answer.seconds)), _bar(-low / span, answer.seconds, span, BLUE))
    return _raw_table(("kind", "time a step", ""), [*bars, whole])


def _bar(start: float, interval: Interval, span: float, colour: str = "") -> str:
    width = interval.value / span
    shade = colour or (PEER if interval.low <= 0 <= interval.high else ORANGE if width > 0 else GREEN)
    style = f"left:{start + min(width, 0.0):.3%};width:{abs(width):.3%};background:{shade}"
    return f'<div class="bar"><span style="{style}"></span></div>'


def _row(part: DifferencePart, over: str) -> tuple[str, ...]:
    times = change(part.seconds), seconds(part.first_seconds), seconds(part.second_seconds)
    names = ("; ".join(names) for names in (part.first_names, part.second_names))
    return part_words(part, over), *times, " / ".join(part.operator[:-1]), *names


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _raw_table(headings, [[escape(cell) for cell in row] for row in rows])


def _raw_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
