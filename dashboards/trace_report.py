"""The report of traces as one file without requests: bars of each rank's time, and the tables."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from types import MappingProxyType

from crosswind.dashboards.assets import asset
from crosswind.dashboards.palette import BLUE, GREEN, HAIRLINE, ORANGE, PEER, PURPLE
from crosswind.dashboards.wording import number, percent, seconds
from crosswind.data.schema.answers.traces import TracedPop, TracedRank, TracePart, TraceReport

COLOURS = MappingProxyType(
    {
        "compute": BLUE,
        "overlapped": GREEN,
        "exposed communication": ORANGE,
        "memory": PURPLE,
        "host-bound": PEER,
        "idle": HAIRLINE,
    }
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { display: block; max-width: 72rem; margin: 0 auto; padding: 24px; }
section { margin-top: 32px; overflow-x: auto; }
.bar { display: flex; height: 18px; min-width: 20rem; }
.bar span { height: 100%; }
.key span { display: inline-block; width: 12px; height: 12px; margin: 0 6px 0 16px; }
td { overflow-wrap: anywhere; }
"""
NANOSECONDS = 1e9


def trace_page(report: TraceReport) -> str:
    """Return the page."""
    parts = [
        f"<h1>{escape(report.verdict)}</h1>",
        _section("Time of each rank", _key(report.ranks) + _bars(report.ranks)),
        _section("Who waits for whom, in collectives", _waits(report.ranks)),
        _section("Collectives", _collectives(report)),
        _section("Kernels with the longest time", _work(report.kernels)),
        _section("Operators with the longest time", _work(report.operators)),
        *(_section(f"POP's metrics over {len(pop.locations)} {pop.over}", _pop(pop)) for pop in report.pop),
        _section("Critical path", _work((*report.critical_path.works, *report.critical_path.ranks))),
        _section("Notes", _list(report.notes)),
    ]
    css = asset("crosswind.css").body.decode()
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>Traces</title><style>{css}{STYLE}</style>'
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>{"".join(parts)}</main></body></html>\n'


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>\n" if content else ""


def _key(ranks: Sequence[TracedRank]) -> str:
    names = [part.name for part in ranks[0].parts]
    keys = (f'<span style="background:{COLOURS[name]}"></span>{escape(name)}' for name in names)
    return f'<p class="key">{"".join(keys)}</p>'


def _bars(ranks: Sequence[TracedRank]) -> str:
    longest = max(rank.span_ns for rank in ranks) or 1
    rows = (
        (
            f"rank {rank.rank}",
            _time(rank.span_ns),
            _bar(rank.parts, rank.span_ns / longest),
            percent(rank.overlap_share),
        )
        for rank in ranks
    )
    return _table(("rank", "span", "its parts", "communication hidden"), rows, raw=2)


def _bar(parts: Sequence[TracePart], width: float) -> str:
    pieces = (
        f'<span style="width:{part.share:.3%};background:{COLOURS[part.name]}" '
        f'title="{escape(part.name)} {escape(_time(part.ns))}, {escape(percent(part.share))}"></span>'
        for part in parts
    )
    return f'<div class="bar" style="width:{width:.2%}">{"".join(pieces)}</div>'


def _waits(ranks: Sequence[TracedRank]) -> str:
    if not any(rank.waited_ns for rank in ranks):
        return ""
    rows = ((f"rank {rank.rank} waited", *map(_time, rank.waited_for_ns)) for rank in ranks)
    return _table(("", *(f"for rank {rank.rank}" for rank in ranks)), rows)


def _collectives(report: TraceReport) -> str:
    rows = [(one.operation, str(one.count), _time(one.transfer_ns), _time(one.wait_ns)) for one in report.collectives]
    return _table(("operation", "count", "transfer", "wait of all ranks"), rows) if rows else ""


def _work(parts: Sequence[TracePart]) -> str:
    rows = [
        (part.name, _time(part.ns), percent(part.share), "" if part.count is None else str(part.count))
        for part in parts
    ]
    return _table(("name", "time", "share", "count"), rows) if rows else ""


def _pop(pop: TracedPop) -> str:
    values = {field.name: getattr(pop, field.name) for field in fields(pop)}
    ratios = {name: value for name, value in values.items() if isinstance(value, float) and name != "runtime_ns"}
    rows = [(name.replace("_", " "), percent(value) if value <= 1 else number(value)) for name, value in ratios.items()]
    estimated = "<p>Serialisation and transfer are estimated, by a replay.</p>" if pop.estimated else ""
    return _table(("metric", "value"), rows) + estimated + _list(pop.notes)


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], raw: int | None = None) -> str:
    """Return a table; the cells of the column `raw` are HTML."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{cell if place == raw else escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _time(ns: float) -> str:
    return seconds(ns / NANOSECONDS)
