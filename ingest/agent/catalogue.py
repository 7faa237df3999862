"""The metric registry as a page: `python -m crosswind.ingest.agent.catalogue > docs/metrics.md`."""

import sys
from collections.abc import Iterable, Iterator, Sequence

from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet, OnFull
from crosswind.data.schema.steps import LOOP_SETS
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.agent.sweep import COLLECTOR
from crosswind.ingest.collectors import SOURCES, made
from crosswind.ingest.collectors.source import Host, Options, Source

OWN = {  # sets that no source fills
    AGENT: "Always on: the agent's metrics of itself, with every sweep.",
    COLLECTOR: "Always on: the state of each source that was due.",
    **dict.fromkeys(LOOP_SETS, "Recorded by the probe."),
    PREFLIGHT: "Recorded by `crosswind check`.",
}
WHEN_FULL = {
    OnFull.WRAP: "starts again from 0",
    OnFull.SATURATE: "stays there",
    OnFull.RESET: "may reset at any time",
    OnFull.CLAMP: "may be corrected downwards",
}
HEAD = """# Metrics

Everything that Crosswind samples, by set; written by `python -m crosswind.ingest.agent.catalogue > docs/metrics.md`.
A set is a table of the lake. Its values stand there as the source gave them, and null where it gave none; queries see
them in the unit named here. A counter's width in bits, or the column that holds its range, and what it does when that
is full, tell a wrap from a reset: `data/lake/delta.py` makes differences of them. Where an epoch is not that of the
row before, the counters of the row were reset.
"""
NODE = "## Keys\n\nEvery row of the agent begins with these.\n"


def page(sources: Iterable[Source] = SOURCES) -> str:
    """Every set with its columns, in Markdown."""
    by_set: dict[MetricSet, list[Source]] = {}
    for source in sources:
        by_set.setdefault(made(source, Host(), Options(source.name)).metric_set, []).append(source)
    sections = [_section(metric_set, "\n".join(map(_origin, origins))) for metric_set, origins in by_set.items()]
    sections += [_section(metric_set, origin) for metric_set, origin in OWN.items()]
    return "\n".join([HEAD, NODE, _table(NODE_KEYS), *sections])


def _section(metric_set: MetricSet, origin: str) -> str:
    heading = f"## `{metric_set.name}`\n\n{_sentence(metric_set.description)}\n"
    return f"{heading}\n{origin}\n\n{_table(metric_set.columns)}"


def _origin(source: Source) -> str:
    pace = f"every {source.interval_seconds:g} s" if source.interval_seconds else "at every tick"
    default = "" if source.is_default else ", once the settings ask for it"
    patience = f", given up after {source.timeout_seconds:g} s" if source.timeout_seconds else ""
    options = f" Options: {', '.join(f'`{name}`' for name in source.options)}." if source.options else ""
    return f"- Source `{source.name}`, read {pace}{default}{patience}. Where it is missing: {source.advice}.{options}"


def _table(columns: Sequence[Column]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in _rows(columns))


def _rows(columns: Sequence[Column]) -> Iterator[Sequence[str]]:
    yield "column", "kind", "unit", "width", "when full", "what"
    yield ("---",) * 6
    for column in columns:
        width, when_full = (_width(column), WHEN_FULL[column.on_full]) if column.kind is Kind.COUNTER else ("", "")
        yield f"`{column.name}`", column.kind, column.unit, width, when_full, column.description.replace("|", "\\|")


def _width(column: Column) -> str:
    if column.range_from:
        return f"`{column.range_from}`"
    return "" if column.dtype == "float64" else str(column.width_bits)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


if __name__ == "__main__":
    sys.stdout.write(page())
