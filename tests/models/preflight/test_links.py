import numpy as np
import pytest

from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.links import Link
from crosswind.models.preflight.links import fitted, link_values

SIZES = (8, 1024, 16 * 1024, 128 * 1024, 1024 * 1024, 8 * 1024 * 1024)


@pytest.mark.parametrize("link", [Link(2e-6, 25e9), Link(60e-6, 1.2e9), Link(5e-3, 1e6)])
def test_the_link_behind_exact_times_is_found(link: Link) -> None:
    fitted_link = fitted(SIZES, [link.seconds(size) for size in SIZES])
    assert fitted_link.alpha_seconds == pytest.approx(link.alpha_seconds, rel=1e-6)
    assert fitted_link.bytes_per_second == pytest.approx(link.bytes_per_second, rel=1e-6)


def test_noisy_times_give_both_figures_to_within_their_noise() -> None:
    """Either figure rests on one or two of six times that are off by 5 %: 95 % of links within about twice that."""
    link, random = Link(20e-6, 3e9), np.random.default_rng(7)
    misses = []
    for _ in range(200):
        fitted_link = fitted(SIZES, [link.seconds(size) * random.normal(1.0, 0.05) for size in SIZES])
        misses.append(
            (
                fitted_link.alpha_seconds / link.alpha_seconds - 1,
                fitted_link.bytes_per_second / link.bytes_per_second - 1,
            )
        )
    assert (np.quantile(np.abs(misses), 0.95, axis=0) < 0.15).all()


def test_a_buffer_that_lets_short_messages_through_hides_no_slow_link() -> None:
    """Messages below 20 kB pass at once, as a token bucket lets them; the others at 5 MB/s."""
    fitted_link = fitted(SIZES, [30e-6 + max(size - 20_000, 0) / 5e6 for size in SIZES])
    assert fitted_link.bytes_per_second == pytest.approx(5e6, rel=0.01)
    assert fitted_link.alpha_seconds == pytest.approx(30e-6, rel=0.1)


def test_a_latency_below_zero_is_none() -> None:
    assert fitted((1000, 10_000), (0.8e-6, 9.8e-6)).alpha_seconds == 0  # the line cuts the axis at -0.2 us


@pytest.mark.parametrize(
    ("sizes", "seconds", "message"),
    [
        ((8, 8, 8), (1e-6, 1e-6, 1e-6), "1 sizes"),
        ((), (), "0 sizes"),
        ((8, 16), (1e-6,), "1 times"),
        ((8, 1_000_000), (1e-3, 1e-3), "expected longer messages to take longer"),
        ((8, 1_000_000), (1e-3, 1e-6), "expected longer messages to take longer"),
    ],
)
def test_times_that_tell_no_link_are_refused(sizes: tuple[int, ...], seconds: tuple[float, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fitted(sizes, seconds)


def test_every_pair_has_its_own_link_and_other_measures_are_let_pass() -> None:
    links = {("n1", "n2"): Link(1e-5, 1e9), ("n1", "n3"): Link(2e-5, 2e9)}
    messages = [
        Measured(node, "message", link.seconds(size), peer=peer, size_bytes=size, method="gloo")
        for size in SIZES
        for (node, peer), link in links.items()
    ]
    lone = Measured("n2", "message", 1e-5, peer="n3", size_bytes=8, method="gloo")
    measured = link_values([*messages, lone, Measured("n1", "gemm", 1e12, "cpu")])
    assert [(figure.node, figure.peer, figure.measure) for figure in measured] == [
        ("n1", "n2", "latency"),
        ("n1", "n2", "bandwidth"),
        ("n1", "n3", "latency"),
        ("n1", "n3", "bandwidth"),
    ]
    assert [figure.value for figure in measured] == pytest.approx([1e-5, 1e9, 2e-5, 2e9], rel=1e-6)
    assert {figure.method for figure in measured} == {"gloo"}
