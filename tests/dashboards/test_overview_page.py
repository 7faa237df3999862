import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from crosswind.client.local import Local
from crosswind.dashboards.figures.forecasts.weather import weather_plot
from crosswind.dashboards.pages.overview import lost
from crosswind.dashboards.pages.overview.asked import HOUR_NS
from crosswind.dashboards.pages.overview.block import Block
from crosswind.dashboards.pages.overview.overview import OverviewView, view
from crosswind.dashboards.pages.page import DAY_NS, PageQuery
from crosswind.dashboards.pages.runs import runs
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.weather import HourForecast, Pace, SystemWeather, WorkloadWeather
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.store.store import Store

Record = Callable[..., None]
NODES = tuple(f"n{number}" for number in range(10))
AGENT = MetricSet("agent", "made", (*NODE_KEYS, Column("lateness_seconds", "made", Kind.GAUGE, "float64", "s")))


def seen(store: Store, **query: str) -> OverviewView:
    return view(Local(store), PageQuery(query))


def block(store: Store, name: str, **query: str) -> Block:
    return next(one for one in seen(store, **query).blocks if one.name == name)


def judge(store: Store, *runs_of: tuple[str, str | None, float, int, float]) -> None:
    """Store slow runs: id, cause, excess in hours, nodes, and how many days ago they began."""
    now = time.time_ns()
    with store.catalog.write() as session:
        for run_id, cause, hours, nodes, days in runs_of:
            run = Run(
                run_id, "gpt", "lab", RunState.COMPLETED, nodes=NODES[:nodes], started_ns=now - int(days * DAY_NS)
            )
            session.runs.put_all([run])
            session.verdicts.put_features(
                [StoredFeatures(RunVerdict(run_id, steps=7), 1, "form", None, 0)], {run_id: []}
            )
            verdict = RunVerdict(run_id, verdict="slow", cause=cause, excess_seconds=3600 * hours)
            session.verdicts.put_verdict(verdict, "{}", revision=(1, 0), allowed=0)


def test_causes_are_ranked_by_the_node_hours_that_they_cost(store: Store) -> None:
    judge(
        store,
        ("r0", "stall", 2.0, 1, 20.0),
        ("r1", "cpu_contention", 1.0, 10, 20.0),
        ("r2", "cpu_contention", 0.5, 4, 0.5),
        ("r3", None, 0.5, 2, 0.1),
        ("old", "stall", 99.0, 10, 40.0),
    )
    shown = block(store, "lost")
    assert shown.finding == (
        "CPU contention cost most in the last 30 days: 12.0 of 15.0 node-hours lost, in 4 slow of 4 runs."
    )
    assert [(row.name, row.values) for row in shown.rows] == [
        ("CPU contention", (2.0, 12.0, 12 / 15, 2)),
        ("stall", (0.0, 2.0, 2 / 15, 1)),
        ("unexplained", (1.0, 1.0, 1 / 15, 1)),
    ]
    assert shown.rows[0].address == "runs?verdict=slow&cause=cpu_contention&period=30d&sort=-excess"
    assert "stall" in block(store, "lost", period="90d").finding[:6].lower()


def test_a_row_leads_to_the_runs_that_it_counts(lab: Store) -> None:
    runs.view(Local(lab), PageQuery({"verdict": "slow"}))  # which judges them
    [row] = block(lab, "lost").rows
    query = dict(part.split("=") for part in row.address.partition("?")[2].split("&"))
    assert [shown.run.run_id for shown in runs.view(Local(lab), PageQuery(query)).rows] == ["r3"]
    assert row.values[-1] == 1


def test_of_an_old_store_the_newest_days_count_and_the_page_says_so(store: Store) -> None:
    judge(store, ("r0", "stall", 1.0, 1, 400.0), ("r1", "stall", 1.0, 3, 410.0), ("older", "stall", 1.0, 1, 440.0))
    shown = block(store, "lost")
    assert "the 30 days up to 20" in shown.finding
    assert ", when the newest run began: 4.00 of 4.00 node-hours lost" in shown.finding
    assert "period" not in shown.rows[0].address


def test_few_runs_are_looked_at_and_the_page_says_how_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(store, *((f"r{number}", "stall", 1.0, 1, number + 1) for number in range(4)))
    monkeypatch.setattr(lost, "NEWEST", 3)
    assert "in the newest 3 runs of the last 30 days: 3.00 of 3.00 node-hours" in block(store, "lost").finding


def test_what_takes_long_is_left_for_later(lab: Store) -> None:
    shown = seen(lab)
    assert {one.name: one.is_pending for one in shown.blocks} == {
        "lost": False,
        **dict.fromkeys(("running", "weather", "regressions", "stragglers", "gaps"), True),
    }
    assert [one.name for one in seen(lab, part="gaps").blocks] == ["gaps"]
    assert not any(one.is_pending for one in seen(lab, part="all").blocks)


def test_a_run_in_progress_has_its_rate_and_end_or_why_there_is_none(store: Store, record: Record) -> None:
    for number in range(9):
        record(store, f"r{number}", minute=number)
    record(store, "live", minute=20, steps=6, state=RunState.RUNNING)
    record(store, "new", minute=21, steps=0, state=RunState.RUNNING)
    shown = block(store, "running", part="running")
    assert shown.finding == "2 runs are in progress."
    new, live = shown.rows
    assert (new.name, new.address) == ("new", "runs/new")
    assert new.values[-3:] == ("no step is recorded yet", None, None)
    done, step, middle, earliest, latest = live.values[-5:]
    assert done == pytest.approx(6 / 24)
    assert step == pytest.approx(0.046, rel=0.1)
    assert time.time_ns() < earliest <= middle <= latest < time.time_ns() + 60e9  # type: ignore[operator]
    assert block(store, "running").rows[1].values[-1] is None


def test_nodes_that_stopped_reporting_are_named(store: Store) -> None:
    assert block(store, "gaps", part="gaps").command == "crosswind agent"
    now = time.time_ns()
    for node, minutes in (("a", 1), ("b", 300), ("c", 45)):
        ts_ns = now - minutes * 60 * 10**9
        store.lake.append(
            node, to_table(AGENT, {"ts_ns": [ts_ns], "node": [node], "boot_id": ["x"], "lateness_seconds": [0.0]})
        )
    shown = block(store, "gaps", part="gaps")
    assert shown.finding == "2 of 3 nodes stopped reporting; b for 5 h 0 min."
    assert [row.name for row in shown.rows] == ["b", "c"]
    assert [row.address for row in shown.rows] == ["stragglers?node=b", "stragglers?node=c"]
    assert [link.address for link in shown.more] == ["data"]


def test_the_weather_leads_to_the_next_hours_of_each_system(store: Store, record: Record) -> None:
    for number in range(9):
        record(store, f"r{number}", minute=number)
    assert [link.address for link in block(store, "weather", part="weather").more] == ["?part=weather&system=lab"]
    assert seen(store, part="weather", system="lab").charts == (), "too few runs"


def test_the_next_hours_say_until_when_a_workload_is_slower() -> None:
    usual = [HourForecast(hour * HOUR_NS, Pace.USUAL, 1.01, 0.9, 1.2) for hour in range(25)]
    slower = [replace(hour, standing=Pace.SLOWER, ratio=1.3) for hour in usual[:7]] + usual[7:]
    of = [
        WorkloadWeather("bert", Pace.USUAL, 0.5, None, tuple(usual), 9, 9, 1, ()),
        WorkloadWeather("gpt", Pace.SLOWER, 0.9, 7 * HOUR_NS, tuple(slower), 9, 9, 1, ()),
        WorkloadWeather("new", Pace.UNKNOWN, None, None, tuple(usual), 1, 0, 1, ()),
    ]
    weather = SystemWeather("lab", 0, None, (), 9, 1, 0, 0, tuple(of), ())
    chart = weather_plot(weather)
    assert chart is not None
    assert chart.title == "gpt on lab is slower until 1970-01-01 07:00 UTC: 1.30x its usual time"
    assert chart.sentence.endswith("of 2 workloads; 1 further workload not drawn.")
    assert [row[:3] for row in chart.table.rows[:2]] == [
        ("gpt", "1970-01-01 00:00", "slower"),
        ("gpt", "1970-01-01 06:00", "slower"),
    ]
    of_usual = weather_plot(replace(weather, workloads=tuple(of[:1])))
    assert of_usual is not None
    assert of_usual.title == "On lab the usual pace is expected for the next 24 hours"
    assert weather_plot(replace(weather, workloads=tuple(of[2:]))) is None


def test_events_are_followed_from_where_the_page_was_made(lab: Store) -> None:
    before = seen(lab, system="lab")
    with lab.catalog.write() as session:
        session.runs.merge(Run("next", "gpt", "lab", RunState.RUNNING, started_ns=time.time_ns()))
    after = seen(lab, system="lab")
    assert after.position > before.position
    assert "system=lab" in after.events
    assert "run.started%2Crun.ended%2Crun.verdict" in after.events


def test_parts_and_periods_are_checked(lab: Store) -> None:
    for query in ({"part": "nope"}, {"period": "2d"}):
        with pytest.raises(InvalidInputError, match="expected one of"):
            seen(lab, **query)
