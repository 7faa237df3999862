"""Metric sets of the training loop: steps with their phases, collectives with arrival and end, recorded values.

The phases of a step sum to its duration. `comm` is exposed communication alone: the time for which the loop stood
still for other ranks. What overlaps with computation is not in it.
"""

from crosswind.data.schema.metric import Column, Kind, MetricSet

PHASES = ("input", "compute", "comm", "checkpoint", "other")
COLLECTIVES, NOT_SEEN = "collectives", "not seen"  # tag of a run whose ranks were never seen to wait for each other
NANOSECOND = 1e-9

RUN_KEYS = (
    Column("ts_ns", "start, node's clock, UTC", Kind.KEY, unit="ns"),
    Column("run_id", "the run", Kind.KEY, "string"),
    Column("rank", "process number in the run, from 0", Kind.KEY),
    Column("step", "turn of the training loop, from 0", Kind.KEY),
)


def _duration(name: str, description: str) -> Column:
    return Column(name, description, unit="s", scale=NANOSECOND)


STEP = MetricSet(
    "step",
    "One turn of the training loop on one rank.",
    (
        *RUN_KEYS,
        _duration("duration_seconds", "wall time of the step; the phases sum to it"),
        _duration("input_seconds", "waiting for the next batch"),
        _duration("compute_seconds", "everything else that the loop's body does"),
        _duration("comm_seconds", "exposed communication: the loop stood still for others in collectives"),
        _duration("checkpoint_seconds", "writing state"),
        _duration("other_seconds", "marked as such by the user: evaluation, logging"),
        _duration("tail_seconds", "part of compute that came after the step's last collective; null without one"),
        _duration("cpu_user_seconds", "user CPU time of the loop's thread"),
        _duration("cpu_system_seconds", "kernel CPU time of the loop's thread"),
        _duration("run_queue_wait_seconds", "time the loop's thread was runnable but not running"),
        Column("minor_faults", "page faults without I/O of the loop's thread", unit="1"),
        Column("major_faults", "page faults with I/O of the loop's thread", unit="1"),
        Column("involuntary_context_switches", "times the loop's thread was preempted", unit="1"),
    ),
)

COLLECTIVE = MetricSet(
    "collective",
    "One collective operation as one rank saw it; ts_ns is the arrival.",
    (
        *RUN_KEYS,
        Column("sequence", "number of the collective within the step", Kind.KEY),
        _duration("duration_seconds", "from this rank's arrival to the end here; null where nobody saw the end"),
        Column("size_bytes", "bytes of the buffer", unit="By"),
        Column("operation", "kind of collective", Kind.FACT, "string"),
        Column("group", "process group", Kind.FACT, "string"),
    ),
)

PROGRESS = MetricSet(
    "progress",
    "Values that the training loop recorded: loss, accuracy, staleness, floating point operations of a step.",
    (
        *RUN_KEYS,
        Column("name", "what was recorded", Kind.KEY, "string"),
        Column("value", "its value; null where it was no finite number", dtype="float64"),
    ),
)

OPERATION = MetricSet(
    "operation",
    "One operation of one rank in a step, as a trace of others recorded it; ts_ns is its begin.",
    (
        *RUN_KEYS,
        Column("operation", "kind of operation", Kind.KEY, "string"),
        Column("number", "counts the operations of a kind on a rank in a step", Kind.KEY),
        _duration("duration_seconds", "from its begin to its end on this rank"),
        Column("stage", "pipeline stage of the rank", Kind.FACT),
        Column("replica", "data parallel replica of the rank", Kind.FACT),
        Column("micro_batch", "of a computation", Kind.FACT),
        Column("chunk", "part of the model on the rank, where it holds several", Kind.FACT),
        Column("meeting", "operations of a step with the same one end together", Kind.FACT, "string"),
    ),
)

LOOP_SETS = (STEP, COLLECTIVE, PROGRESS)  # every row is of a run
