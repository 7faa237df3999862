"""Properties of every page in a browser: nothing cut off, figures with the numbers of the API, a way by keyboard."""

import json
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

LOOKS = Path(__file__).with_name("looks.js").read_text()
SCALES = {"": 1, "x": 1, "%": 0.01, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
NUMBER = re.compile(r"(?<![\w.])([+\u2212-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?)\s*(%|[nµmkMGT](?=[A-Za-z/]|$)|min|h|d|)")
UNITS = (1, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9, 100, 60, 3600)
SPANS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
LONG = re.compile(r"(\d+) (h|min) (\d+) (min|s)")  # 3 min 12 s


def seen(page: Page, what: str) -> Any:
    """Return what one of the methods of looks.js sees: as text, as each number of a value is a message of its own."""
    text = page.evaluate(f"JSON.stringify({LOOKS}.{what}())")
    return json.loads(text)


def walk(page: Page) -> list[str]:
    """Press Tab from the top to the end. Return what that does not reach, or does not mark or show as in focus."""
    page.set_viewport_size({"width": 1280, "height": 900})
    for _ in range(seen(page, "watch")):
        page.keyboard.press("Tab")
    return list(seen(page, "missed"))


def strokes(pdf: bytes) -> int:
    """Return the number of lines and curves that a PDF draws."""
    drawn = 0
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, flags=re.DOTALL):
        with suppress(zlib.error):
            drawn += len(re.findall(rb"\d (?:l|c)\n", zlib.decompress(stream)))
    return drawn


def differing_figures(page: Page, charts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in what the figures that are drawn differ from those of the page's data."""
    expected = [
        {
            **{name: chart[name] for name in ("name", "title", "sentence")},
            "rows": [chart["table"]["headers"], *chart["table"]["rows"]],
        }
        for chart in charts
    ]
    shown = seen(page, "figures")
    if shown != expected:
        return [f"the page has {shown}, its data {expected}"]
    marks = seen(page, "marks")
    return [line for chart in expected for line in _undrawn(chart, marks.get(chart["name"], []))]


def _undrawn(chart: Mapping[str, Any], marks: Sequence[Any]) -> Iterator[str]:
    """Name a figure in which some row of its table has no number that is drawn."""
    drawn = sorted({number for mark in marks for number, _ in _numbers(mark) if number})
    texts = {str(mark) for mark in marks}
    for row in chart["rows"][1:]:
        wanted = [number for cell in row[1:] for number in _numbers(cell)]
        if (
            wanted
            and not texts & set(row)
            and not any(_is_among(number, drawn, rounding) for number, rounding in wanted)
        ):
            yield f"{chart['name']}: {row} is not drawn, among {drawn[:9]}"


def _numbers(value: Any) -> Iterator[tuple[float, float]]:
    """Return the numbers of a mark or of a cell in their base unit, and by how much each may be rounded."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield float(value), 0.0
        return
    for first, unit, second, rest in LONG.findall(str(value)):
        yield int(first) * SPANS[unit] + int(second) * SPANS[rest], 0.51 * SPANS[rest]
    for digits, unit in NUMBER.findall(LONG.sub("", str(value))):
        scale = SPANS.get(unit) or SCALES.get(unit, 1)
        plain = digits.replace(",", "").replace("\u2212", "-")
        yield float(plain) * scale, 0.51 * scale * 10.0 ** -len(plain.partition(".")[2])


def _is_among(number: float, drawn: Sequence[float], rounding: float) -> bool:
    """Return whether a number is among the sorted ones, as it is or in another unit of its kind."""
    error = max(rounding, 1e-3 * abs(number))
    places = ((bisect_left(drawn, (number - error) * unit), (number + error) * unit) for unit in UNITS)
    return any(place < len(drawn) and drawn[place] <= most for place, most in places)
