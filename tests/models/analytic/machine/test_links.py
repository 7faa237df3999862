import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.links import Link, LogGP


def test_a_message_costs_alpha_and_its_bytes() -> None:
    assert Link(1e-5, 1e9).seconds(1e6) == pytest.approx(1e-5 + 1e-3)


def test_sharers_divide_the_bandwidth_and_not_the_latency() -> None:
    assert Link(1e-5, 1e9).shared_by(4) == Link(1e-5, 2.5e8)


def test_loggp_by_hand() -> None:
    link = LogGP(latency_seconds=5e-6, overhead_seconds=1e-6, gap_seconds=4e-6, gap_seconds_per_byte=1e-9)
    assert link.seconds(1) == pytest.approx(7e-6)
    assert link.seconds(1001) == pytest.approx(8e-6)
    assert link.burst_seconds(3, 1) == pytest.approx(2 * 4e-6 + 7e-6)


def test_a_burst_waits_for_the_processor_when_that_is_slower_than_the_gap() -> None:
    link = LogGP(latency_seconds=5e-6, overhead_seconds=6e-6, gap_seconds=4e-6, gap_seconds_per_byte=1e-9)
    assert link.burst_seconds(2, 1) == pytest.approx(6e-6 + 17e-6)


def test_loggp_as_hockney_differs_by_one_byte() -> None:
    link = LogGP(latency_seconds=5e-6, overhead_seconds=1e-6, gap_seconds=4e-6, gap_seconds_per_byte=1e-9)
    assert link.link().seconds(1000) - link.seconds(1000) == pytest.approx(1e-9)


def test_impossible_links_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="bytes_per_second is 0, expected a positive number"):
        Link(1e-5, 0)
    with pytest.raises(InvalidInputError, match="alpha_seconds is nan, expected 0 or more"):
        Link(float("nan"), 1e9)
    with pytest.raises(InvalidInputError, match="n_bytes is 0"):
        LogGP(1e-6, 1e-6, 1e-6, 1e-9).seconds(0)
    with pytest.raises(InvalidInputError, match="sharers is 0, expected a whole number of 1 or more"):
        Link(1e-5, 1e9).shared_by(0)
