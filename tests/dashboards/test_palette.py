import re
from pathlib import Path

import pytest

from crosswind.dashboards import assets
from crosswind.dashboards.palette import BLUE, PAPER, PHASE_COLOURS, PHASE_PATTERNS, VARIABLES, translucent
from crosswind.data.schema.steps import PHASES

CSS = (Path(assets.__file__).parent / "static" / "crosswind.css").read_text()
BLOCKS = [
    dict(re.findall(r"(--[a-z]+): (#[0-9a-f]{6})", block)) for block in re.findall(r"\{([^{}]*--ink:[^{}]*)\}", CSS)
]
LIGHT, DARK, CHOSEN_DARK, PRINTED = BLOCKS
DATA = ("--blue", "--peer", "--orange", "--vermilion", "--green", "--purple")


def test_the_style_sheet_and_the_figures_agree_on_every_colour() -> None:
    assert {colour: LIGHT[variable] for colour, variable in VARIABLES.items()} == {
        colour: colour for colour in VARIABLES
    }


def test_what_is_printed_is_light_on_the_white_of_its_paper() -> None:
    assert {name: colour for name, colour in LIGHT.items() if name in PRINTED} == PRINTED
    assert set(LIGHT) - set(PRINTED) <= {"--paper", "--wash", "--control"}


def test_dark_is_the_same_whether_chosen_or_by_the_system() -> None:
    assert DARK == CHOSEN_DARK
    assert set(DARK) == set(LIGHT)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_stand_out_from_the_paper(theme: dict[str, str]) -> None:
    for ground in ("--paper", "--wash"):
        assert contrast(theme["--ink"], theme[ground]) >= 7
        assert contrast(theme["--muted"], theme[ground]) >= 4.5
        assert contrast(theme["--blue"], theme[ground]) >= 4.5  # links
    assert contrast(theme["--control"], theme["--paper"]) >= 3
    # Okabe-Ito's orange and purple are lighter than 3:1 on white; position, pattern and words carry those bars too.
    assert [name for name in DATA if contrast(theme[name], theme["--paper"]) < 3] == (
        ["--orange", "--purple"] if theme is LIGHT else []
    )


def test_phases_are_distinguished_by_colour_and_by_pattern() -> None:
    assert set(PHASE_COLOURS) == set(PHASE_PATTERNS) == set(PHASES)
    assert len(set(PHASE_COLOURS.values())) == len(set(PHASE_PATTERNS.values())) == len(PHASES)


def test_a_colour_with_opacity() -> None:
    assert translucent(BLUE, 0.25) == "rgba(0, 114, 178, 0.25)"


def contrast(first: str, second: str) -> float:
    """Source: WCAG 2.2, contrast ratio and relative luminance."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_black_on_white_is_twenty_one() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(PAPER, PAPER) == 1
