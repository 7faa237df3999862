import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.devices.device import Device
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.step.roofline import roofline_seconds, saturating_efficiency, smooth_max


def test_much_arithmetic_is_bound_by_the_peak(device: Device) -> None:
    assert roofline_seconds(1e14, 1e9, device, efficiency=0.5) == 2.0


def test_little_arithmetic_is_bound_by_memory(device: Device) -> None:
    assert roofline_seconds(1e9, 2e12, device) == 2.0


def test_half_of_the_efficiency_is_reached_at_half_flops() -> None:
    assert saturating_efficiency(1e9, most=0.8, half_flops=1e9) == pytest.approx(0.4)


@given(work=st.floats(1, 1e18), more=st.floats(1, 1e18))
def test_larger_kernels_are_no_less_efficient_and_never_beyond_the_most(work: float, more: float) -> None:
    less_efficient, efficient = (saturating_efficiency(w, most=0.7, half_flops=1e9) for w in (work, work + more))
    assert less_efficient <= efficient <= 0.7


def test_the_smooth_maximum_adds_most_where_both_are_equal() -> None:
    assert smooth_max(3, 4) == 5
    assert smooth_max(1, 1) == pytest.approx(2**0.5)
    assert smooth_max(0, 7) == 7


def test_impossible_work_is_refused(device: Device) -> None:
    with pytest.raises(InvalidInputError, match="flops is -1"):
        roofline_seconds(-1, 0, device)
    with pytest.raises(InvalidInputError, match="efficiency is 0"):
        roofline_seconds(1, 0, device, efficiency=0)
