"""The breakdown sums to the span, and agrees with HolisticTraceAnalysis 0.5.0 on traces that others recorded."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.traces.made_traces import KINETO, REFERENCES, read
from tests.needs import needs_data

from crosswind.data.traces.columns import EventColumns
from crosswind.data.traces.trace import Kind, Place, RankTrace
from crosswind.models.traces.breakdown import Breakdown, breakdown
from crosswind.models.traces.occupancy import union_ns
from crosswind.models.traces.steps import without_last_step

needs_kineto = needs_data(KINETO)


def classes(result: Breakdown) -> tuple[float, ...]:
    """Return idle, compute, non-compute and span, microseconds, as HTA counts them."""
    idle = result.host_bound_ns + result.idle_ns
    parts = idle, result.compute_ns + result.overlapped_ns, result.exposed_ns + result.memory_ns, result.span_ns
    return tuple(part / 1000 for part in parts)


@needs_kineto
@pytest.mark.parametrize("name", REFERENCES)
def test_traces_in_whole_microseconds_equal_hta_exactly(name: str) -> None:
    with (KINETO / "reference" / f"{name}.temporal_breakdown.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    columns = "idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)"
    expected = [tuple(float(row[column]) for column in columns) for row in rows]
    results = [breakdown(without_last_step(trace)) for trace in read(*REFERENCES[name])]
    assert [classes(result) for result in results] == expected


@needs_kineto
@pytest.mark.parametrize("name", REFERENCES)
def test_overlap_equals_hta(name: str) -> None:
    with (KINETO / "reference" / f"{name}.comm_comp_overlap.csv").open() as stream:
        expected = [float(row["comp_comm_overlap_pctg"]) for row in csv.DictReader(stream)]
    results = [breakdown(without_last_step(trace)) for trace in read(*REFERENCES[name])]
    assert [round(100 * result.overlap_share, 2) for result in results] == expected


@needs_kineto
def test_a_trace_in_nanoseconds_is_not_rounded() -> None:
    [trace] = read("a100_pgconfig_rank0of2.json.gz")
    result = breakdown(without_last_step(trace))
    assert classes(result) == pytest.approx((336419.715, 76935.828, 22232.019, 435587.562), abs=0.002)
    assert round(100 * result.overlap_share, 2) == 14.76


WORK = st.tuples(st.integers(0, 500), st.integers(0, 90), st.sampled_from([Kind.KERNEL, Kind.COLLECTIVE, Kind.COPY]))


@given(st.lists(WORK, min_size=1, max_size=40))
def test_the_classes_sum_to_the_span_and_compute_is_its_union(work: list[tuple[int, int, Kind]]) -> None:
    columns = EventColumns()
    begins, durations, kinds = (list(column) for column in zip(*work, strict=True))
    columns.add(len(work), {"begin_ns": begins, "duration_ns": durations, "kind": kinds, "name": np.zeros(len(work))})
    trace = RankTrace(columns.events(), ("work",), (Place("stream 0", 0),))
    result = breakdown(trace)
    assert result.span_ns == max(b + d for b, d, _ in work) - min(begins)
    computing = trace.events.of(Kind.KERNEL)
    assert result.compute_ns + result.overlapped_ns == union_ns((computing.begin_ns, computing.end_ns))
