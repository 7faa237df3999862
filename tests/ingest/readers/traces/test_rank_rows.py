"""Events of tables that are no events are left out, and counted."""

import pytest

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.traces.trace import Kind, Place
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.models.traces.report import trace_report

STREAM = Place("stream 7", 0, 7)


def test_events_without_a_begin_or_that_end_before_it_are_noted() -> None:
    rows = RankRows("a.sqlite", base_ns=1000)
    rows.add(Kind.KERNEL, ([5, -1, 9, 1 << 62, 0], [6, 3, 8, -1, (1 << 63) - 1]), ["gemm"] * 5, [STREAM] * 5)
    trace = rows.trace(notes=("another",))
    assert trace.events.begin_ns.tolist() == [1005]
    assert trace.notes == (
        "another",
        "4 events without a begin, that end before it, or whose end is no time are left out",
    )
    rows = RankRows("a.sqlite")
    rows.add(Kind.KERNEL, ([9], [8]), ["gemm"], [STREAM])
    with pytest.raises(InvalidInputError, match=r"a\.sqlite: no event; expected some to report on \(1 events without"):
        trace_report([rows.trace(rank=0)])
    with pytest.raises(MalformedError, match=r"a\.sqlite: events of kind kernel: .*expected whole numbers"):
        rows.add(Kind.KERNEL, ([1 << 64], [1 << 65]), ["gemm"], [STREAM])
