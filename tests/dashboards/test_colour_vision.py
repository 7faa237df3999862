"""Series that share a figure are told apart without colour, and their colours by readers with any colour vision."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.dashboards.test_every_chart import NAMES, charts, drawings
from tests.dashboards.test_palette import DARK, LIGHT

from crosswind.dashboards.palette import VARIABLES

__all__ = ["charts", "drawings"]  # fixtures
# Source: Machado, Oliveira and Fernandes (2009), the severest form; of linear RGB.
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
APART = 4.5  # CIE76: twice what is just noticed; the test above keeps those apart that are far from each other


def linear(colour: str) -> np.ndarray:
    levels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return a colour in CIELAB, white of D65."""
    x, y, z = np.cbrt(np.clip(XYZ @ np.clip(rgb, 0, 1), 1e-6, None) / XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str, deficiency: str) -> float:
    simulated = [lab(np.array(DEFICIENCIES[deficiency]) @ linear(colour)) for colour in (one, other)]
    return float(np.linalg.norm(simulated[0] - simulated[1]))


def series(drawing: Any) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    """Name, colour and look without colour of each trace in a legend that has one colour of the palette."""
    for trace in drawing.data:
        marker, line = (getattr(trace, part, None) for part in ("marker", "line"))
        colours = [part.color for part in (marker, line) if part is not None and isinstance(part.color, str)]
        if trace.showlegend is False or not trace.name or not colours or colours[0] not in VARIABLES:
            continue
        pattern = marker.pattern.shape if trace.type == "bar" else None
        symbol = marker.symbol if trace.type == "scatter" and "markers" in (trace.mode or "markers") else None
        is_line = trace.type == "scatter" and "lines" in (trace.mode or "")
        yield trace.name, colours[0], (symbol, pattern, is_line and (line.dash, line.width))


@pytest.mark.parametrize("name", NAMES)
def test_series_differ_in_more_than_colour(drawings: Mapping[str, Any], name: str) -> None:
    for (one, colour, look), (other, others, others_look) in combinations(series(drawings[name]), 2):
        assert colour == others or str(look) != str(others_look), f"{one} and {other}: {look}"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_that_share_a_figure_stay_apart(
    drawings: Mapping[str, Any], deficiency: str, theme: Mapping[str, str]
) -> None:
    pairs = {
        tuple(sorted((colour, others)))
        for drawing in drawings.values()
        for (_, colour, _), (_, others, _) in combinations(series(drawing), 2)
        if colour != others
    }
    near = {pair: distance(*(theme[VARIABLES[colour]] for colour in pair), deficiency) for pair in pairs}
    assert len(pairs) > 5
    assert {tuple(VARIABLES[colour] for colour in pair): round(far) for pair, far in near.items() if far < APART} == {}


def test_red_and_green_of_one_lightness_are_alike_to_some() -> None:
    assert distance("#d55e00", "#7a7a00", "deuteranopia") < distance("#d55e00", "#0072b2", "deuteranopia") / 3
