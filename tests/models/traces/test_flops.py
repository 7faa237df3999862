"""FLOPs of a run against the peak of its devices."""

import math

import pytest
from tests.models.traces.made_traces import STREAM, THREAD, Row, made

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Kind
from crosswind.models.traces.flops import flops

NAN = float("nan")
ROWS: list[Row] = [
    (Kind.OPERATOR, "linear", THREAD, 0, 100),
    (Kind.OPERATOR, "mm", THREAD, 10, 50),
    (Kind.CALL, "launch", THREAD, 20, 5),
    (Kind.KERNEL, "gemm", STREAM, 100, 400),
    (Kind.KERNEL, "add", STREAM, 900, 200),
]
CORRELATION = [-1, -1, 1, 1, -1]


def test_operators_take_the_time_of_what_they_launch_and_count_once() -> None:
    trace = made(ROWS, 0, correlation=CORRELATION, flops=[8000, 8000, NAN, NAN, NAN], bytes=[100, -1, -1, -1, -1])
    result = flops([trace], peak_flops_per_second=16e9)
    [point] = result.points
    assert (point.name, point.count, point.flops, point.flops_per_byte) == ("linear", 1, 8000, 80)
    assert point.flops_per_second == pytest.approx(8000 / 400e-9)
    assert result.utilisation == pytest.approx(8000 / (1000e-9 * 16e9))


def test_kernels_that_state_flops_are_points() -> None:
    [point] = flops([made(ROWS, flops=[NAN, NAN, NAN, 800, NAN])]).points
    assert (point.name, point.seconds) == ("gemm", pytest.approx(400e-9))
    assert math.isnan(point.flops_per_byte)


def test_flops_of_the_caller_give_the_utilisation_alone() -> None:
    result = flops([made(ROWS, 0), made(ROWS, 1)], 1e9, stated_flops=500)
    assert result.utilisation == pytest.approx(500 / (2000e-9 * 1e9))
    assert (result.points, len(result.notes)) == ((), 1)


@pytest.mark.parametrize(
    ("peak", "stated", "message"), [(None, None, "no event states"), (0.0, 1.0, "peak"), (1, NAN, "FLOPs: nan")]
)
def test_what_cannot_be_is_refused(peak: float | None, stated: float | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        flops([made(ROWS)], peak, stated)
