"""Events of tables that are no events are left out, and counted."""

import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind, Place
from crosswind.ingest.readers.traces.rank_rows import RankRows


def test_events_without_a_begin_or_that_end_before_it_are_noted() -> None:
    rows = RankRows("a.sqlite", base_ns=1000)
    rows.add(Kind.KERNEL, ([5, -1, 9, 1 << 62], [6, 3, 8, -1]), ["gemm"] * 4, [Place("stream 7", 0, 7)] * 4)
    trace = rows.trace(notes=("another",))
    assert trace.events.begin_ns.tolist() == [1005]
    assert trace.notes == ("another", "3 events without a begin, or that end before it, are left out")
    with pytest.raises(MalformedError, match=r"a\.sqlite: events of kind kernel: .*expected whole numbers"):
        rows.add(Kind.KERNEL, ([1 << 64], [1 << 65]), ["gemm"], [Place("stream 7", 0, 7)])
