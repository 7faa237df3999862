import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crosswind.dashboards import figures, palette
from crosswind.dashboards.figures.causes import cause_totals
from crosswind.dashboards.figures.chart import TABLE_ROWS, Chart
from crosswind.dashboards.figures.coverage import coverage_plot, leaderboard
from crosswind.dashboards.figures.phases import phase_stack
from crosswind.dashboards.figures.ranks import rank_heat_map
from crosswind.dashboards.figures.runs import runs_over_time
from crosswind.dashboards.figures.steps import step_ribbon
from crosswind.dashboards.figures.variability import cohort_distributions, cohort_over_time
from crosswind.dashboards.figures.waterfall import waterfall
from crosswind.dashboards.pages.render import drawn
from crosswind.data.steps import PHASES
from crosswind.models.explain.explanation import Explanation, Verdict

HOSTILE = "<img src=x onerror=alert(1)>&</script>%{x}"
STEPS = 3000


@pytest.fixture
def charts(slow: Explanation) -> Mapping[str, Chart | None]:
    """One of every kind, larger than fits, with a hostile name wherever a stranger may choose one."""
    step, rank = np.repeat(np.arange(STEPS), 2), np.tile([0, 1], STEPS)
    steps = pd.DataFrame({"step": step, "rank": rank, "duration_seconds": 0.1 + step % 7 * 0.01})
    steps = steps.assign(**{f"{phase}_seconds": 0.01 * (rank + 1) for phase in PHASES})
    cohort = pd.DataFrame({"step": range(STEPS), "p10": 0.1, "p50": 0.2, "p90": 0.3})
    runs = pd.DataFrame({"run_id": [f"{HOSTILE}{number}" for number in range(STEPS)], "workload": HOSTILE})
    runs = runs.assign(started_ns=range(STEPS), cohort="c", step_mean_seconds=np.linspace(1, 2, STEPS), verdict="slow")
    times = {"measured_seconds": 2.0, "expected_seconds": 1.0, "excess_low": 0.5, "excess_high": 1.5}
    shares = pd.DataFrame({"run_id": ["a"], "cause": [HOSTILE], "seconds": [1.0], "is_main": [True]})
    return {
        "waterfall": waterfall(slow),
        "steps": step_ribbon(steps, cohort, cohort_runs=3),
        "ranks": rank_heat_map(steps),
        "phases": phase_stack(steps),
        "runs": runs_over_time(runs.iloc[:200].assign(**times)),
        "cohort": cohort_over_time(runs, {HOSTILE + "1": Verdict.SLOW}),
        "ecdf": cohort_distributions(runs, {"c": HOSTILE}, selected="c"),
        "causes": cause_totals(shares, explained_runs=1),
        "coverage": coverage_plot(pd.DataFrame({"level": [0.1, 0.9], "share": [0.3, 0.9]}), runs=100),
        "leaderboard": leaderboard(pd.DataFrame({"method": [HOSTILE, "m"], "loss": 0.1, "is_model": [False, True]})),
    }


NAMES = ("waterfall", "steps", "ranks", "phases", "runs", "cohort", "ecdf", "causes", "coverage", "leaderboard")


def chart_of(charts: Mapping[str, Chart | None], name: str) -> Chart:
    chart = charts[name]
    assert chart is not None
    return chart


def test_every_figure_file_is_held_to_this_contract() -> None:
    files = {path.stem for path in Path(figures.__file__).parent.glob("*.py")} - {"__init__", "chart", "verdicts"}
    assert files == {"waterfall", "steps", "ranks", "phases", "runs", "variability", "causes", "coverage"}


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_has_a_finding_a_sentence_and_a_table(charts: Mapping[str, Chart | None], name: str) -> None:
    chart = chart_of(charts, name)
    assert chart.name == name
    assert chart.title
    assert not chart.title.endswith(".")
    assert chart.sentence.endswith(".")
    assert 1 <= len(chart.table.rows) <= TABLE_ROWS
    assert {len(row) for row in chart.table.rows} == {len(chart.table.headers)}


@pytest.mark.parametrize("name", NAMES)
def test_axes_are_named_and_the_figure_has_a_height(charts: Mapping[str, Chart | None], name: str) -> None:
    figure = chart_of(charts, name).draw()
    said = [figure.layout.xaxis.title.text, *(note.text for note in figure.layout.annotations)]
    assert any(said)
    assert figure.layout.height <= 640


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_gets_few_points(charts: Mapping[str, Chart | None], name: str) -> None:
    for trace in chart_of(charts, name).draw().data:
        cells = sum(len(row) for row in trace.z) if trace.type == "heatmap" else len(trace.x)
        assert cells <= (20_000 if trace.type == "heatmap" else 2000)


@pytest.mark.parametrize("name", NAMES)
def test_every_colour_has_a_dark_twin(charts: Mapping[str, Chart | None], name: str) -> None:
    text = str(chart_of(charts, name).draw().to_json())
    assert set(re.findall(r'"(#[0-9a-f]{3,8})"', text)) <= set(palette.VARIABLES)
    for red, green, blue, opacity in re.findall(r'"rgba\((\d+), (\d+), (\d+), ([\d.]+)\)"', text):
        assert opacity == "0" or f"#{int(red):02x}{int(green):02x}{int(blue):02x}" in palette.VARIABLES


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_stays_text(charts: Mapping[str, Chart | None], name: str) -> None:
    chart = chart_of(charts, name)
    assert not [text for text in texts(chart.draw().to_plotly_json()) if "<img" in text]
    safe = str(drawn(chart).json)
    assert not set("<>&") & set(safe)
    assert json.loads(safe)["data"]


def texts(value: Any, key: str = "") -> list[str]:
    """Every text of a figure that plotly would read as HTML; the first of customdata is an id for a link."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for name, each in value.items() for text in texts(each, name)]
    if isinstance(value, list | tuple | np.ndarray):
        parts = [each[1:] for each in value] if key == "customdata" else value
        return [text for each in parts for text in texts(each)]
    return []
