"""The report of traces as text."""

from collections.abc import Iterator, Sequence

from crosswind.cli.text.output import printable, table
from crosswind.dashboards.wording import percent, seconds
from crosswind.data.schema.answers.traces import TracedPop, TracedRank, TracePart, TraceReport

NAME_WIDTH = 60
NANOSECONDS = 1e9
NONE = "-"


def trace_text(report: TraceReport) -> str:
    """Return the verdict first, then tables."""
    return "\n".join(_lines(report))


def _lines(report: TraceReport) -> Iterator[str]:
    yield printable(report.verdict)
    yield from ("", _ranks(report.ranks))
    if report.collectives:
        yield from ("", f"Collectives of two ranks or more, clocks by {report.clock_basis}:", _arrivals(report))
        yield from ("", _collectives(report))
    if report.kernel_types:
        yield from ("", "Devices by what runs at once:", _parts(report.kernel_types, "type"))
    if report.kernels:
        yield from ("", "Longest kernels:", _work(report.kernels, "kernel"))
    if report.operators:
        yield from ("", "Longest operators, by the device's time that they launch (without a device: the host's):")
        yield _work(report.operators, "operator")
    for pop in report.pop:
        yield from ("", f"POP over {len(pop.locations)} {pop.over}: {_places(pop.locations)}", _pop(pop))
    path = report.critical_path
    if path.works:
        yield from ("", f"Critical path, {_time(path.span_ns)}:", _parts((*path.works, *path.ranks), "part"))
    if report.notes:
        yield ""
    yield from (printable(f"note: {note}") for note in report.notes)


def _ranks(ranks: Sequence[TracedRank]) -> str:
    classes = [part.name for part in ranks[0].parts]
    rows = [
        (
            str(rank.rank),
            _time(rank.span_ns),
            *(percent(part.share) for part in rank.parts),
            NONE if rank.overlap_share is None else percent(rank.overlap_share),
        )
        for rank in ranks
    ]
    return table(("rank", "span", *classes, "communication hidden"), rows)


def _arrivals(report: TraceReport) -> str:
    rows = [
        (
            str(rank.rank),
            str(rank.times_last),
            _time(rank.waited_ns),
            _time(rank.caused_ns),
            _time(rank.clock_offset_ns),
            NONE if rank.clock_residual_ns is None else _time(rank.clock_residual_ns),
        )
        for rank in report.ranks
    ]
    return table(("rank", "came last", "waited", "others waited for it", "clock moved by", "clock unsure by"), rows)


def _collectives(report: TraceReport) -> str:
    rows = [
        (one.operation, str(one.count), _time(one.transfer_ns), _time(one.wait_ns), _bytes(one.bytes))
        for one in report.collectives
    ]
    return table(("operation", "count", "transfer", "wait of all ranks", "bytes of a rank"), rows)


def _bytes(size: int | None) -> str:
    return NONE if size is None else str(size)


def _parts(parts: Sequence[TracePart], heading: str) -> str:
    return table((heading, "time", "share"), [(part.name, _time(part.ns), percent(part.share)) for part in parts])


def _work(parts: Sequence[TracePart], heading: str) -> str:
    rows = [(short(part.name), _time(part.ns), percent(part.share), str(part.count or 0)) for part in parts]
    return table((heading, "time", "share", "count"), rows)


def _pop(pop: TracedPop) -> str:
    estimated = " (estimated)" if pop.estimated else ""
    ratios = {
        "parallel efficiency": pop.parallel_efficiency,
        "  load balance": pop.load_balance,
        "  communication efficiency": pop.communication_efficiency,
        f"    serialisation{estimated}": pop.serialisation,
        f"    transfer{estimated}": pop.transfer,
        "    device communication": pop.device_communication,
        "    orchestration": pop.orchestration,
    }
    rows = [(name, percent(ratio)) for name, ratio in ratios.items() if ratio is not None]
    rows += [(name, f"{value:.2f}") for name, value in (("IPC", pop.ipc), ("GHz", pop.frequency_ghz)) if value]
    return table(("metric", "value"), rows)


def _places(locations: Sequence[str]) -> str:
    return locations[0] if len(locations) == 1 else f"{locations[0]} ... {locations[-1]}"


def short(name: str) -> str:
    """Return the begin of a long name."""
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 3]}..."


def _time(ns: float) -> str:
    return seconds(ns / NANOSECONDS)
