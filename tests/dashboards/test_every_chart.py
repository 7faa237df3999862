import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.dashboards.conftest import SLOW

from crosswind.dashboards import figures, palette
from crosswind.dashboards.figures.causes import cause_totals
from crosswind.dashboards.figures.chart import TABLE_ROWS, Chart
from crosswind.dashboards.figures.checks import checked_values
from crosswind.dashboards.figures.compare.quantiles import QuantileShift, step_quantiles
from crosswind.dashboards.figures.coverage import coverage_plot, leaderboard
from crosswind.dashboards.figures.dose import DoseLine, dose_plot
from crosswind.dashboards.figures.effects import Effect, effects_plot
from crosswind.dashboards.figures.fleet import fleet_plot
from crosswind.dashboards.figures.forecasts.distribution import time_distribution
from crosswind.dashboards.figures.forecasts.scaling import scaling_plot
from crosswind.dashboards.figures.forecasts.weather import weather_plot
from crosswind.dashboards.figures.levels import levels_plot
from crosswind.dashboards.figures.nodes.frontier import frontier
from crosswind.dashboards.figures.nodes.losses import Losses
from crosswind.dashboards.figures.nodes.sampled import Sampled
from crosswind.dashboards.figures.nodes.timeline import Bar, Timeline
from crosswind.dashboards.figures.parameters import ContourPlot, Measured, ParallelPlot, SlicePlot, importance_plot
from crosswind.dashboards.figures.phases import phase_stack
from crosswind.dashboards.figures.ranks import rank_heat_map
from crosswind.dashboards.figures.run.course import Part, RunCourse
from crosswind.dashboards.figures.run.strips import NodeStrips, Strip
from crosswind.dashboards.figures.run.waits import wait_map
from crosswind.dashboards.figures.runs import runs_over_time
from crosswind.dashboards.figures.search.front import front_plot
from crosswind.dashboards.figures.search.timeline import timeline
from crosswind.dashboards.figures.steps import step_ribbon
from crosswind.dashboards.figures.traces.arrivals import arrival_matrix
from crosswind.dashboards.figures.traces.exchanges import exchanges
from crosswind.dashboards.figures.traces.longest import longest_kernels, longest_operators
from crosswind.dashboards.figures.traces.path import path_shares
from crosswind.dashboards.figures.traces.pop import EarlierPop, pop_table
from crosswind.dashboards.figures.traces.replays import replays
from crosswind.dashboards.figures.traces.times import times_of_ranks
from crosswind.dashboards.figures.traces.turns import steps_of_ranks, waits_of_ranks
from crosswind.dashboards.figures.trials import TrialValue, trial_values
from crosswind.dashboards.figures.variability import cohort_distributions, cohort_over_time
from crosswind.dashboards.figures.waterfall import waterfall
from crosswind.dashboards.figures.weights import source_weights
from crosswind.dashboards.pages.render import drawn
from crosswind.data.schema.answers.explanations import StepChange, Verdict
from crosswind.data.schema.answers.predictions import Quantile
from crosswind.data.schema.answers.stragglers import ComparisonBasis, PeerKind, RankedPeer
from crosswind.data.schema.answers.traces import (
    TracedCollectives,
    TracedPath,
    TracedPop,
    TracedRank,
    TracePart,
    TraceWhatIf,
)
from crosswind.data.schema.answers.weather import HourForecast, Pace, SystemWeather, WorkloadWeather
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Price
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.steps import PHASES
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.models.advice.scaling import scaling_curve
from crosswind.models.preflight.findings import Finding
from crosswind.models.preflight.references import Basis as Says
from crosswind.models.reports.data_health import NodeHealth
from crosswind.models.reports.energy import RunEnergy, configurations
from crosswind.models.reports.links import LinkEvents
from crosswind.models.stragglers.history import History, Level, RunTime

CURVE = scaling_curve([1, 2, 4], Prediction((0.05, 0.5, 0.95), np.array([[8, 9, 10], [4, 5, 6], [3, 4, 5]])), Price())
HOSTILE = "<img src=x onerror=alert(1)>&</script>%{x}"
STEPS = 3000
CLASSES = ("compute", "overlapped", "exposed communication", "memory", "host-bound", "idle")


@pytest.fixture(scope="module")
def charts() -> Mapping[str, Chart | None]:
    """One of every kind, larger than fits, with a hostile name wherever a stranger may choose one."""
    step, rank = np.repeat(np.arange(STEPS), 2), np.tile([0, 1], STEPS)
    slowest = pd.DataFrame({"step": range(STEPS), "seconds": 0.1 + np.arange(STEPS) % 7 * 0.01})
    ranks = pd.DataFrame({"rank": [0, 1], "last_ratio": [0.0, 1.0]})
    ranks = ranks.assign(**{f"{phase}_seconds": [0.01, 0.02] for phase in PHASES})
    cells = pd.DataFrame({"rank": rank, "cell": step, "wait_seconds": 0.01})
    cohort = pd.DataFrame({"step": range(STEPS), "p10": 0.1, "p50": 0.2, "p90": 0.3})
    runs = pd.DataFrame({"run_id": [f"{HOSTILE}{number}" for number in range(STEPS)], "workload": HOSTILE})
    runs = runs.assign(started_ns=range(STEPS), cohort="c", step_mean_seconds=np.linspace(1, 2, STEPS), verdict="slow")
    times = {"measured_seconds": 2.0, "expected_seconds": 1.0, "excess_low": 0.5, "excess_high": 1.5}
    shares = pd.DataFrame({"run_id": ["a"], "cause": [HOSTILE], "seconds": [1.0], "is_main": [True]})
    return {
        "waterfall": waterfall(SLOW),
        "quantiles": quantile_shift(),
        "steps": step_ribbon(slowest, cohort, cohort_runs=3, change=StepChange(5, None, 0.1, 0.2)),
        "ranks": rank_heat_map(ranks, cells[cells["cell"] < 1000], cells[cells["rank"] == 0]),
        "phases": phase_stack(ranks),
        "runs": runs_over_time(runs.iloc[:200].assign(**times)),
        "cohort": cohort_over_time(runs, {HOSTILE + "1": Verdict.SLOW}),
        "ecdf": cohort_distributions(runs, {"c": HOSTILE}, selected="c"),
        "causes": cause_totals(shares, explained_runs=1),
        "coverage": coverage_plot(pd.DataFrame({"level": [0.1, 0.9], "share": [0.3, 0.9]}), runs=100),
        "leaderboard": leaderboard(pd.DataFrame({"method": [HOSTILE, "m"], "loss": 0.1, "is_model": [False, True]})),
        **of_one_run(),
        **of_fleets(),
        **of_nodes(),
        **of_traces(),
    }


def of_one_run() -> dict[str, Chart | None]:
    line = (1.0, None, 2.0)
    strips = (
        Strip(HOSTILE, "bytes/s", (0.0, 1.0, 2.0), *[line] * 4),
        Strip("b", "ratio", (0.0, 1.0, 2.0), *[line] * 4),
    )
    edges = {"culprit": [0], "victim": [1], "seconds": [2.0], "steps": [9], "lost_seconds": [2.0], "of_steps": [9]}
    return {
        "strips": NodeStrips(HOSTILE, 3, "step", (0.0, 3.0), strips, (HOSTILE,), mark=1),
        "course": RunCourse((Part("start-up", 1.0), Part("steps", 9.0))),
        "waits": wait_map(pd.DataFrame(edges)),
    }


@pytest.fixture(scope="module")
def drawings(charts: Mapping[str, Chart | None]) -> Mapping[str, Any]:
    """The figure of every chart; large ones take seconds to draw."""
    return {name: chart_of(charts, name).draw().as_plotly() for name in NAMES}


def quantile_shift() -> QuantileShift:
    a, b = step_quantiles(np.linspace(1, 3, STEPS)), step_quantiles(np.linspace(1, 2, STEPS))
    assert a is not None
    assert b is not None
    return QuantileShift(a, b, HOSTILE)


def of_fleets() -> dict[str, Chart | None]:
    effects = [Effect(HOSTILE, 1.2, 1.1, 1.3, number < 5, HOSTILE) for number in range(STEPS)]
    doses = [DoseLine(HOSTILE, (1.0, 1.1, 1.2), True)] * 9
    facts = ("s", 1.2, 1.1, 1.3, 1.0, True, 9, 1, "boot", 1.0, ComparisonBasis.RANKS)
    nodes = [RankedPeer(PeerKind.NODE, HOSTILE, *facts)] * STEPS
    runs = tuple(RunTime(HOSTILE, number, 1.0) for number in range(STEPS))
    levels = tuple(Level(30 * number, 30 * number + 29, 1 + number % 2, 30) for number in range(100))
    complete = TrialRecord(Trial({HOSTILE: HOSTILE}, TrialState.DONE, 1.0), HOSTILE)
    failed = TrialRecord(Trial({HOSTILE: HOSTILE}, TrialState.FAILED), HOSTILE)
    both = Study("s", "s", {}, "wait", "s", 0, 0, objectives=("minimise wait", "minimise watts"))
    study = Study(HOSTILE, HOSTILE, {}, HOSTILE, HOSTILE, 0, 0)
    value = Finding(HOSTILE, None, HOSTILE, "gemm", "flop/s", 1.0, 2.0, 0.5, -9.0, True, Says.FLEET, 9)
    return {
        "effects": effects_plot(effects, finding=HOSTILE, axis="times as long", verdicts=("slows", "is not shown to")),
        "dose": dose_plot(doses),
        "fleet": fleet_plot(PeerKind.NODE, nodes),
        "levels": levels_plot(History("s", HOSTILE, runs, levels)),
        "checks": checked_values([value] * STEPS),
        **of_parameters(),
        "trials": trial_values(study, [complete, failed] * STEPS, HOSTILE),
        "front": front_plot(both, [replace(complete, outcomes={"watts": 2.0}), complete] * STEPS),
        "timeline": timeline([replace(complete, trial=replace(complete.trial, trial_id=new_ulid()))] * STEPS, {}, 0),
        "weights": source_weights([replace(complete, weights={HOSTILE: 0.25, "own": 0.75})] * STEPS),
    }


def of_nodes() -> dict[str, Chart | None]:
    bars = [Bar(lane, HOSTILE, HOSTILE, n, n + 9) for n in range(600) for lane in ("runs", "jobs", "gaps")]
    nodes = (NodeHealth(HOSTILE, 10**12, 0.5, (0.5,) * 48, None, None, None),) * 60
    facts = (HOSTILE, HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, 2)
    runs = [RunEnergy(*facts, 1.0 + n, 1e6 / (1 + n), None) for n in range(STEPS)]
    return {
        "history": Timeline(tuple(bars), 0, 10**12),
        "sampled": Sampled(nodes, STEPS, 0, 10**12),
        "losses": Losses((LinkEvents("drops", HOSTILE, HOSTILE, 9.0, 0.1, True, 0.01, True),) * 1000, STEPS),
        "frontier": frontier(HOSTILE, "measured", runs, configurations(runs)),
    }


def of_traces() -> dict[str, Chart | None]:
    parts = [TracePart(f"{HOSTILE}{n}", 1 + n, 0.1, HOSTILE, n) for n in range(200)]
    classes = tuple(replace(parts[n], name=name) for n, name in enumerate(CLASSES))
    waits = tuple(range(200))
    steps = (7,) * STEPS
    ranks = [
        TracedRank(n, HOSTILE, 9, 21, "device", classes, 0.5, steps, steps, 1 + n, 9, 9 + n, waits, 0, None)
        for n in range(200)
    ]
    places = (f"{HOSTILE}, device 0",) * 200
    pop = TracedPop("devices", places, 9.0, *[0.5] * 5, True, 0.9, 0.8, 1.2, 1.4, ())
    path = TracedPath(9, *[tuple(parts)] * 3)
    replayed = TraceWhatIf(HOSTILE, 9.0, 3.0, 3.0, 6.0, None, ())
    return {
        "times": times_of_ranks(ranks),
        "turns": steps_of_ranks(ranks),
        "exposed": waits_of_ranks(ranks),
        "arrivals": arrival_matrix(ranks),
        "exchanges": exchanges([TracedCollectives(f"{HOSTILE}{n}", 9, 9, 9, 9) for n in range(99)], 2),
        "pop": pop_table([pop, replace(pop, over="hosts")], [EarlierPop(HOSTILE, pop)] * 3),
        "replays": replays([replayed] * 99),
        "path": path_shares(path),
        "kernels": longest_kernels(parts),
        "operators": longest_operators(parts),
    }


def of_parameters() -> dict[str, Chart | None]:
    trials = tuple(TrialValue(n, {HOSTILE: HOSTILE, f"{HOSTILE}2": n % 50 / 7}, float(n)) for n in range(STEPS))
    measured = Measured(HOSTILE, HOSTILE, False, trials)
    names = (HOSTILE, f"{HOSTILE}2")
    return {
        "importance": importance_plot(HOSTILE, {f"{HOSTILE}{n}": 0.001 for n in range(200)}, 9),
        "slices": SlicePlot(measured, names),
        "parallel": ParallelPlot(measured, names),
        "distribution": time_distribution([Quantile(level, 9.0 + level) for level in (0.05, 0.5, 0.9, 0.95)], 12.0),
        "scaling": scaling_plot(CURVE, nodes=2, outside=(4,)),
        "weather": weather_plot(weather()),
        "contour": ContourPlot(measured, names, (HOSTILE, "b"), (0.5, 1.5), ((1.0, 2.0), (3.0, 4.0))),
    }


NAMES = (
    *("strips", "course", "waits"),
    *(
        "quantiles",
        "waterfall",
        "steps",
        "ranks",
        "phases",
        "runs",
        "cohort",
        "ecdf",
        "causes",
        "coverage",
        "leaderboard",
    ),
    *("effects", "dose", "fleet", "levels", "checks", "trials", "weights"),
    *("importance", "slices", "parallel", "contour"),
    *("history", "sampled", "losses", "frontier"),
    *("distribution", "scaling", "weather", "front", "timeline"),
    *("times", "turns", "exposed", "arrivals", "exchanges", "pop", "replays", "path", "kernels", "operators"),
)


def weather() -> SystemWeather:
    hours = tuple(HourForecast(hour * 3600 * 10**9, Pace.SLOWER, 1.3, 1.1, 1.6) for hour in range(25))
    workloads = [WorkloadWeather(HOSTILE, Pace.SLOWER, 0.9, 7, hours, 9, 9, 1, ()) for _ in range(6)]
    return SystemWeather(HOSTILE, 0, None, (), 9, 1, 0, 0, tuple(workloads), ())


def chart_of(charts: Mapping[str, Chart | None], name: str) -> Chart:
    chart = charts[name]
    assert chart is not None
    return chart


def test_slices_stand_in_rows_of_three_with_the_same_scale_of_values() -> None:
    names = ("gradient_as_bucket_view", "threads", "precision", "batch")
    trials = (TrialValue(1, dict.fromkeys(names, 1), 1.0),)
    layout = SlicePlot(Measured("seconds", "s", False, trials), names).draw().layout
    assert layout["xaxis"]["title"]["text"] == "gradient_as_<br>bucket_view"
    assert [layout[f"xaxis{nth}"]["anchor"] for nth in ("", "2", "3", "4")] == ["y", "y", "y", "y2"]
    assert layout["xaxis4"]["domain"] == layout["xaxis"]["domain"]
    assert layout["yaxis2"]["domain"][1] < layout["yaxis"]["domain"][0]
    assert layout["yaxis2"]["matches"] == "y"


def test_a_knee_where_nothing_ran_is_no_finding_and_slower_is_not_said_to_gain() -> None:
    near, far = (scaling_plot(CURVE, nodes=2, outside=outside) for outside in ((), (1, 2, 4)))
    assert near is not None
    assert far is not None
    assert far.title == f"{near.title}, where nothing like it ran"
    slower = Prediction((0.05, 0.5, 0.95), np.array([[4, 5, 6], [8, 9, 10], [9, 10, 11]]))
    chart = scaling_plot(scaling_curve([1, 2, 4], slower, Price()), nodes=1, outside=())
    assert chart is not None
    assert chart.title == "More nodes take longer: the knee is at 1 node"


def test_every_figure_file_is_held_to_this_contract() -> None:
    files = {path.stem for path in Path(figures.__file__).parent.rglob("*.py")} - {"__init__", "chart", "verdicts"}
    of_runs = {"quantiles", "waterfall", "steps", "ranks", "phases", "runs", "variability", "causes", "coverage"}
    of_one = {"strips", "course", "waits", "distribution", "scaling", "weather"}
    of_nodes = {"timeline", "sampled", "losses", "frontier", "front", "charts"}
    of_many = {"effects", "dose", "fleet", "levels", "checks", "trials", "weights", "parameters"}
    of_traces = {"bars", "times", "turns", "arrivals", "exchanges", "pop", "replays", "path", "longest", "differing"}
    assert files == of_runs | of_one | of_nodes | of_many | of_traces


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
def test_axes_are_named_and_the_figure_has_a_height(drawings: Mapping[str, Any], name: str) -> None:
    figure = drawings[name]
    said = [figure.layout.xaxis.title.text, *(note.text for note in figure.layout.annotations)]
    assert any(said)
    assert figure.layout.height <= 640


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_gets_few_points(drawings: Mapping[str, Any], name: str) -> None:
    for trace in drawings[name].data:
        cells = sum(len(row) for row in trace.z) if trace.type == "heatmap" else len(trace.x)
        assert cells <= (20_000 if trace.type == "heatmap" else 2000)


@pytest.mark.parametrize("name", NAMES)
def test_every_colour_has_a_dark_twin(drawings: Mapping[str, Any], name: str) -> None:
    text = str(drawings[name].to_json())
    assert set(re.findall(r'"(#[0-9a-f]{3,8})"', text)) <= set(palette.VARIABLES)
    for red, green, blue, opacity in re.findall(r'"rgba\((\d+), (\d+), (\d+), ([\d.]+)\)"', text):
        assert opacity == "0" or f"#{int(red):02x}{int(green):02x}{int(blue):02x}" in palette.VARIABLES


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_stays_text(charts: Mapping[str, Chart | None], drawings: Mapping[str, Any], name: str) -> None:
    chart = chart_of(charts, name)
    assert not [text for text in texts(drawings[name].to_plotly_json()) if "<img" in text]
    safe = str(drawn(chart).json)
    assert not set("<>&") & set(safe)
    assert json.loads(safe)["data"]


def texts(value: Any, key: str = "") -> list[str]:
    """Every text of a figure that plotly would read as HTML; the first of customdata is an id for a link."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for name, child in value.items() for text in texts(child, name)]
    if isinstance(value, list | tuple | np.ndarray):
        parts = [row[1:] for row in value if row] if key == "customdata" else value
        return [text for part in parts for text in texts(part)]
    return []
