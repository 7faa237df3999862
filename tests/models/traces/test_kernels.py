"""Kernels by type and name equal HolisticTraceAnalysis 0.5.0; operators get the device's time that they cause."""

import csv

import pytest
from tests.models.traces.made_traces import DLRM8, KINETO, OTHER_STREAM, REFERENCES, STREAM, THREAD, made, read
from tests.needs import needs_data

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Kind
from crosswind.models.traces.kernels import kernel_types, kernels
from crosswind.models.traces.nesting import parents
from crosswind.models.traces.operators import operators
from crosswind.models.traces.steps import without_last_step

TYPES = {"COMMUNICATION": "communication", "COMPUTATION": "compute", "MEMORY": "memory"}
STEP = [
    (Kind.OPERATOR, "outer", THREAD, 0, 100),
    (Kind.CALL, "launch", THREAD, 5, 5),
    (Kind.OPERATOR, "inner", THREAD, 20, 50),
    (Kind.CALL, "launch", THREAD, 30, 5),
    (Kind.KERNEL, "gemm", STREAM, 12, 30),
    (Kind.KERNEL, "add", STREAM, 50, 7),
    (Kind.KERNEL, "lost", OTHER_STREAM, 60, 2),
]
CORRELATION = [-1, 1, -1, 2, 1, 2, 9]


@needs_data(KINETO)
@pytest.mark.parametrize("name", REFERENCES)
def test_types_equal_hta(name: str) -> None:
    with (KINETO / "reference" / f"{name}.kernel_breakdown.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    sums = {row["kernel_type"]: float(row["sum"]) for row in rows}
    expected = {frozenset(TYPES[one] for one in key.split(" overlapping ")): us for key, us in sums.items() if us}
    types = kernel_types([without_last_step(trace) for trace in read(*REFERENCES[name])])
    assert {frozenset(names): ns / 1000 for names, ns in types.busy_ns.items() if ns} == expected


@needs_data(KINETO)
def test_shares_of_a_published_run() -> None:
    shares = kernel_types(read(*DLRM8)).shares
    three = shares[("communication",)], shares[("compute",)], shares["communication", "compute"]
    assert [round(100 * share, 1) for share in three] == [83.8, 12.9, 3.0]


def test_kernels_of_one_name_are_summed_over_ranks() -> None:
    totals = kernels([made(STEP, 0), made(STEP, 1)])
    assert totals.ranks == (0, 1)
    assert [(one.name, one.total_ns, one.count, one.mean_ns) for one in totals.totals] == [
        ("gemm", 60, 2, 30.0),
        ("add", 14, 2, 7.0),
        ("lost", 4, 2, 2.0),
    ]
    assert sum(one.share for one in totals.totals) == pytest.approx(1.0)


def test_collectives_without_an_operation_are_reported() -> None:
    [note] = kernels([made([(Kind.COLLECTIVE, "ncclDevKernel_Generic(x)", STREAM, 0, 5)])]).notes
    assert note.startswith("unknown collective: 1")


def test_the_device_belongs_to_the_innermost_operator() -> None:
    result = operators([made(STEP, correlation=CORRELATION)])
    [outer, inner] = result.totals
    assert (outer.name, outer.device_own_ns, outer.device_ns, outer.host_own_ns) == ("outer", 30, 37, 50)
    assert (inner.name, inner.device_own_ns, inner.device_ns, inner.host_ns) == ("inner", 7, 7, 50)
    assert result.unassigned_ns == 2
    assert result.notes == ("2 ns of devices belong to no traced operator",)


def test_without_a_launch_the_stated_operator_counts() -> None:
    rows = [(Kind.OPERATOR, "mm", THREAD, 0, 9), (Kind.KERNEL, "gemm", STREAM, 20, 30)]
    [row] = operators([made(rows, operator=[77, 77])]).totals
    assert (row.name, row.device_ns, row.mean_ns, row.share) == ("mm", 30, 30.0, 1.0)


def test_work_without_any_operator_belongs_to_none() -> None:
    result = operators(
        [made([(Kind.CALL, "launch", THREAD, 0, 5), (Kind.KERNEL, "gemm", STREAM, 2, 9)], correlation=[1, 1])]
    )
    assert (result.totals, result.unassigned_ns) == ((), 9)


def test_recursion_counts_once() -> None:
    rows = [(Kind.OPERATOR, "to", THREAD, 0, 9), (Kind.OPERATOR, "to", THREAD, 2, 4)]
    [row] = operators([made(rows)]).totals
    assert (row.count, row.host_ns, row.host_own_ns) == (2, 9, 9)


def test_threads_do_not_enclose_each_other() -> None:
    rows = [(Kind.OPERATOR, "a", THREAD, 0, 9), (Kind.OPERATOR, "b", THREAD + 1, 2, 4)]
    rows += [(Kind.OPERATOR, "c", THREAD, 3, 1), (Kind.OPERATOR, "d", THREAD, 9, 1)]
    assert parents(made(rows).events).tolist() == [-1, -1, 0, -1]


def test_no_traces_and_a_rank_twice_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no traces"):
        kernel_types([])
    with pytest.raises(InvalidInputError, match="rank 3 more than once"):
        kernels([made(STEP, 3), made(STEP, 3)])
