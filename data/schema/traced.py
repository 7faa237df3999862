"""Metric sets of traces: every event of every rank, and what a trace says of its rank."""

from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.steps import NANOSECOND

KEYS = (
    Column("ts_ns", "begin, within the time of the run, UTC", Kind.KEY, unit="ns"),
    Column("run_id", "the run", Kind.KEY, "string"),
    Column("rank", "process number in the run, from 0", Kind.KEY),
)

TRACE_EVENT = MetricSet(
    "trace_event",
    "One event of a trace: a kernel, a copy, an operator, a call, a range.",
    (
        *KEYS,
        Column("begin_ns", "begin on the rank's own clock", Kind.KEY, unit="ns"),
        Column("number", "position among the events of its trace", Kind.KEY),
        Column("duration_seconds", "from its begin to its end", unit="s", scale=NANOSECOND),
        Column("kind", "kernel, collective, copy, operator, call, sync, annotation, step ...", Kind.FACT, "string"),
        Column("name", "of the kernel, operator, call or range", Kind.FACT, "string"),
        Column("place", "stream or thread", Kind.FACT, "string"),
        Column("device", "number of the device in its node; null on the host", Kind.FACT),
        Column("thread", "number of the stream or thread", Kind.FACT),
        Column("correlation", "connects a call with the work that it launched", Kind.FACT),
        Column("operator", "id of the operator that it belongs to", Kind.FACT),
        Column("communicator", "process group of a collective", Kind.FACT, "string"),
        Column("sequence", "number of a collective in its process group", Kind.FACT),
        Column("size_bytes", "copied or sent", unit="By"),
        Column("flops", "floating point operations, where stated", dtype="float64", unit="1"),
    ),
)

TRACED_RANK = MetricSet(
    "traced_rank",
    "The trace of one rank; its events are in trace_event.",
    (
        *KEYS,
        Column("first_ns", "begin of the first event on the rank's own clock", Kind.KEY, unit="ns"),
        Column("last_ns", "begin of the last event", Kind.FACT, unit="ns"),
        Column("events", "number of events", Kind.FACT, unit="1"),
        Column("source", "the file", Kind.FACT, "string"),
        Column("format", "the tool that recorded it", Kind.FACT, "string"),
        Column("facts", "process groups, counters and notes, as JSON", Kind.FACT, "string"),
    ),
)
