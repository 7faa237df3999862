"""Ink, paper and the Okabe-Ito colours.

Figures are drawn in these, the light ones; a page swaps each for its CSS variable, which has a dark twin.
Source: Okabe and Ito, Color Universal Design (2008).
"""

INK = "#1b1f24"
PAPER = "#fbfbf9"
MUTED = "#5b6470"
HAIRLINE = "#dcdad3"
LOW = "#ecebe5"  # empty end of a sequential scale; its full end is BLUE
BLUE = "#0072b2"  # this run, the selection
PEER = "#868c95"  # peers, history
ORANGE = "#e69f00"  # watch
VERMILION = "#d55e00"  # bad
GREEN = "#009e73"  # good
PURPLE = "#cc79a7"

VARIABLES = {
    INK: "--ink",
    PAPER: "--paper",
    MUTED: "--muted",
    HAIRLINE: "--hairline",
    LOW: "--low",
    BLUE: "--blue",
    PEER: "--peer",
    ORANGE: "--orange",
    VERMILION: "--vermilion",
    GREEN: "--green",
    PURPLE: "--purple",
}

PHASE_COLOURS = {"input": ORANGE, "compute": BLUE, "comm": PEER, "checkpoint": GREEN, "other": PURPLE}
PHASE_PATTERNS = {"input": "\\", "compute": "", "comm": "/", "checkpoint": "x", "other": "."}


def translucent(colour: str, opacity: float) -> str:
    """The colour with an opacity, in the form that plotly takes and pages swap."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def hatched(*shapes: str) -> dict[str, object]:
    """Return bars' patterns, paper lines over their own colour, as a second channel besides the colour."""
    return {
        "shape": list(shapes),
        "fillmode": "overlay",
        "fgcolor": PAPER,
        "fgopacity": 0.75,
        "size": 7,
        "solidity": 0.25,
    }
