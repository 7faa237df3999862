from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull
from crosswind.ingest.agent.catalogue import page
from crosswind.ingest.collectors import SOURCES, made
from crosswind.ingest.collectors.source import Host, Options, Source

GUIDE = Path(__file__).parents[3] / "docs" / "metrics.md"
ENERGY = Column("energy_joules_total", "a|b", Kind.COUNTER, unit="joules", range_from="range_joules")
PORT = MetricSet(
    "port",
    "one port",
    (
        Column("receive_bytes_total", "received", Kind.COUNTER, "uint64", "bytes", 4, 32, OnFull.SATURATE),
        ENERGY,
        Column("cpu_seconds_total", "worked", Kind.COUNTER, "float64", "seconds", on_full=OnFull.CLAMP),
        Column("ifindex", "interface", Kind.EPOCH),
    ),
)


@dataclass(frozen=True)
class PortCollector:
    metric_set: ClassVar[MetricSet] = PORT


def test_a_column_is_listed_with_its_unit_its_width_and_what_happens_when_it_is_full() -> None:
    port = Source("port", lambda host, options: PortCollector(), "plug it in", 10.0, 2.0, False, ("name",))  # type: ignore[arg-type, return-value]
    _, _, section = page([port]).partition("## `port`\n")
    assert section.partition("\n## ")[0].splitlines() == [
        "",
        "One port.",
        "",
        "- Source `port`, read every 10 s, once the settings ask for it, given up after 2 s. "
        "Where it is missing: plug it in. Options: `name`.",
        "",
        "| column | kind | unit | width | when full | what |",
        "| --- | --- | --- | --- | --- | --- |",
        "| `receive_bytes_total` | counter | bytes | 32 | stays there | received |",
        "| `energy_joules_total` | counter | joules | `range_joules` | starts again from 0 | a\\|b |",
        "| `cpu_seconds_total` | counter | seconds |  | may be corrected downwards | worked |",
        "| `ifindex` | epoch |  |  |  | interface |",
    ]


def test_every_set_and_every_source_is_on_the_page() -> None:
    lines = page().splitlines()
    sets = [made(source, Host(), Options(source.name)).metric_set for source in SOURCES]
    assert {f"## `{metric_set.name}`" for metric_set in sets} < set(lines)
    assert all(any(line.startswith(f"- Source `{source.name}`, read ") for line in lines) for source in SOURCES)


def test_the_guide_says_what_the_code_does() -> None:
    """Write it again with: python -m crosswind.ingest.agent.catalogue > docs/metrics.md."""
    assert GUIDE.read_text() == page()
