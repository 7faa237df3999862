import json
import math
import re

import pytest
from starlette.testclient import TestClient
from tests.dashboards.conftest import CPU, START_NS, Recorded, write
from tests.dashboards.test_every_page import html_of
from tests.serving import own_client, patient_app

from crosswind.client.local import Local
from crosswind.dashboards.figures.compare.quantiles import QuantileShift, step_quantiles
from crosswind.dashboards.figures.waterfall import Waterfall
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.runs.compare import CompareView, view
from crosswind.dashboards.pages.runs.differences import CounterDifference, fact_differences, recorded
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.effects import CounterColumn
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

SECOND = 1_000_000_000


def seen(store: Store, **query: str) -> CompareView:
    return view(Local(store), PageQuery(query))


def test_the_slower_of_two_runs_is_named_with_interval_and_main_reason(lab: Store) -> None:
    shown = seen(lab, a="r3", b="r1")
    assert re.match(r"A took 1\.6\dx \[.*\] the time a step of B\. CPU contention took \d+% of that\.", shown.sentence)
    assert (shown.slower and shown.slower.run_id) == "r3"
    swapped = seen(lab, run="r1,r3")
    assert swapped.sentence.startswith("B took 1.6")
    assert (swapped.slower and swapped.slower.run_id) == "r3"


def test_the_waterfall_sums_to_the_difference_that_the_api_gives(lab: Store) -> None:
    chart = seen(lab, a="r3", b="r1").charts[0]
    comparison = Local(lab).compare("r1", "r3")
    assert isinstance(chart, Waterfall)
    assert (chart.expected_seconds, chart.measured_seconds) == (comparison.faster_seconds, comparison.slower_seconds)
    assert chart.drops[-1].end == pytest.approx(comparison.slower_seconds)
    assert [drop.cause for drop in chart.drops if drop.is_main] == ["cpu_contention"]
    assert chart.title.endswith("between B and A")


def test_more_steps_are_a_part_of_the_difference(store: Store) -> None:
    write(store, Recorded("long", steps=60))
    write(store, Recorded("short", steps=30, minute=1))
    chart = seen(store, a="short", b="long").charts[0]
    assert isinstance(chart, Waterfall)
    parts = {drop.cause: drop.seconds.value for drop in chart.drops}
    comparison = Local(store).compare("long", "short")
    expected = "more_steps" if comparison.slower == "long" else "fewer_steps"
    assert abs(parts[expected]) == pytest.approx(30 * 0.0454, rel=0.02)


def test_quantiles_of_step_times_are_shown_with_their_differences(lab: Store) -> None:
    chart = seen(lab, a="r3", b="r1").charts[1]
    assert isinstance(chart, QuantileShift)
    assert chart.differences == pytest.approx([0.0302] * 7, abs=0.001)
    assert [row[0] for row in chart.table.rows] == ["P10", "P25", "P50", "P75", "P90", "P95", "P99"]
    assert (chart.a.steps, chart.b.steps) == (21, 21)


def test_a_run_alone_is_compared_with_its_cohort(lab: Store) -> None:
    shown = seen(lab, a="r3")
    assert shown.explanation == Local(lab).explain("r3")
    assert shown.explanation is not None
    assert shown.sentence == shown.explanation.sentence
    assert (shown.b, shown.peers, [chart.name for chart in shown.charts]) == (None, 4, ["waterfall", "quantiles"])
    assert "its cohort" in shown.charts[1].title


def test_runs_that_cannot_be_compared_are_shown_with_the_reason(lab: Store) -> None:
    shown = seen(lab, a="r3", b="lost")
    assert shown.sentence == "No verdict on A and B."
    assert shown.reason == "r3 is of workload 'nanogpt', lost of 'bert': expected one workload"
    assert shown.charts == ()
    assert shown.alike_facts > 0


def test_what_is_alike_is_counted_and_what_differs_is_listed() -> None:
    a = Run("a", "w", "lab", RunState.COMPLETED, 2, {"batch": 8, "lr": 0.1}, nodes=("n1",), software={"torch": "2.9"})
    b = Run("b", "w", "lab", RunState.COMPLETED, 2, {"batch": 8, "lr": 0.2}, nodes=("n2",), software={"torch": "2.9"})
    differing, alike = fact_differences(a, [b, b, a])
    assert [(one.name, one.a, one.b, one.shared) for one in differing] == [
        ("config.lr", "0.1", "0.2", 1),
        ("nodes", "n1", "n2", 1),
    ]
    assert alike == 4  # system, ranks, batch, torch


def test_counters_stand_side_by_side_those_that_differ_most_first(store: Store) -> None:
    for minute, (run_id, rate) in enumerate((("idle", 1.0), ("busy", 8.0))):
        write(store, Recorded(run_id, steps=0, minute=minute))
        start = START_NS + minute * 60 * SECOND
        times = [start + second * SECOND for second in range(0, 31, 5)]
        samples = {"ts_ns": times, "node": ["a"] * 7, "device": ["all"] * 7, "boot_id": ["x"] * 7}
        seconds = [rate * 5 * number for number in range(7)]
        table = to_table(CPU, {**samples, "user_seconds_total": seconds})
        store.lake.append(f"more-{run_id}", table)
    [one] = recorded(store, "busy", ("idle",)).counters
    assert one.counter.name == "cpu.user_seconds_total[all] per second"
    assert one.ratio == pytest.approx(8.0, rel=0.05)
    assert not one.is_alike


def test_a_ratio_is_given_only_where_it_says_anything() -> None:
    gauge = CounterColumn("m", "c", "", "", "bytes", "")
    none, some = CounterDifference(gauge, 5.0, 0.0), CounterDifference(gauge, 2000.0, 1000.0)
    assert (none.ratio, none.relative, some.ratio, some.a_words) == (None, 1.0, 2.0, "2.00 kB")
    assert CounterDifference(gauge, 1000.0, 1001.0).is_alike


def test_without_runs_there_is_a_form_that_leads_to_the_newest_slow_one(lab: Store) -> None:
    Local(lab).explain("r3")
    shown = seen(lab)
    [suggestion] = shown.suggested
    assert suggestion.other
    assert (suggestion.run.run_id, suggestion.other.run_id) == ("r3", "r2")
    with own_client(patient_app(lab), base_url="http://127.0.0.1") as client:
        html = html_of(client, "/compare")
    assert 'href="./compare?a=r3"' in html
    assert 'href="./compare?a=r3&amp;b=r2" aria-label="Compare r3 with the run nearest in time, r2"' in html
    assert 'name="a"' in html


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        ({"a": "nope"}, NotFoundError, "'nope'"),
        ({"a": "r1", "b": "r1"}, InvalidInputError, "r1 is compared with itself"),
        ({"run": "r1,r2,r3"}, InvalidInputError, "3 runs, expected one or two"),
        ({"run": "r1", "a": "r2"}, InvalidInputError, "expected one or two"),
    ],
)
def test_a_wrong_question_is_named(lab: Store, query: dict[str, str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        seen(lab, **query)


def test_two_ticked_runs_lead_to_their_comparison_without_script(lab: Store) -> None:
    with own_client(patient_app(lab), base_url="http://127.0.0.1") as client:
        html = html_of(client, "/runs?workload=nanogpt&columns=job&columns=user")
        assert html.count('type="checkbox" name="run"') == 5
        assert "columns=job%2Cuser" in html  # links of the page keep the choice
        assert '<form class="compare" action="./compare"' in html
        both = comparison_of(client, "/compare.json?workload=nanogpt&run=r3&run=r1")
    assert both == ("r3", "r1")


def comparison_of(client: TestClient, address: str) -> tuple[str, str]:
    comparison = json.loads(client.get(address).text)["comparison"]
    assert math.isclose(
        comparison["slower_seconds"],
        comparison["faster_seconds"]
        + comparison["more_steps_seconds"]
        + sum(share["seconds"]["value"] for share in comparison["shares"])
        + comparison["unexplained"]["value"],
    )
    return comparison["slower"], comparison["faster"]


def test_no_step_has_no_quantile() -> None:
    assert step_quantiles([]) is None
