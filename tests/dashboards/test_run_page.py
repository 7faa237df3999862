import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.dashboards.conftest import CPU, MS, START_NS

from crosswind.client.local import Local
from crosswind.dashboards.figures.run.strips import NodeStrips
from crosswind.dashboards.figures.run.waits import WaitMap
from crosswind.dashboards.figures.steps import StepRibbon
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.runs.differences import FactDifference
from crosswind.dashboards.pages.runs.node_strips import _quantiles
from crosswind.dashboards.pages.runs.recorded import recorded
from crosswind.dashboards.pages.runs.run import Coverage, RunPageView, view
from crosswind.dashboards.pages.runs.unusual import unusual
from crosswind.dashboards.queries import NodeSource
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.store.store import Store


def seen(store: Store, run_id: str, **parameters: str) -> RunPageView:
    return view(Local(store), PageQuery(parameters, run_id))


def test_a_slow_run_has_every_figure_and_a_cause(lab: Store) -> None:
    shown = seen(lab, "r3")
    names = ["waterfall", "steps", "ranks", "phases", "course", "waits"]
    assert [chart.name for chart in shown.charts] == names
    assert (shown.explanation.verdict, shown.explanation.cause) == (Verdict.SLOW, "cpu_contention")
    assert shown.charts[2].title == "Rank 1 arrives last in 100 % of steps"
    assert "over the band from P10 to P90 of 4 other runs" in shown.charts[1].sentence


def test_coverage_counts_what_was_recorded_while_the_run_lasted(lab: Store) -> None:
    assert seen(lab, "r3").coverage == Coverage(24, 3, 2, 2, (NodeSource("cpu", 4, 2, 2),))
    lost = seen(lab, "lost").coverage
    assert (lost.steps, lost.ranks_with_steps, lost.has_all_ranks) == (0, 0, False)
    assert lost.node_sources == (NodeSource("cpu", 0, 0, 0),)


def test_a_run_that_cannot_be_judged_has_no_waterfall(lab: Store) -> None:
    shown = seen(lab, "live")
    assert not shown.is_judged
    assert [chart.name for chart in shown.charts] == ["steps", "ranks", "phases", "course"]
    assert seen(lab, "lost").charts == ()


def test_a_run_leads_to_the_page_that_knows_more_of_its_cause(lab: Store) -> None:
    first, *others = seen(lab, "r3").leads
    assert (first.address, first.is_of_cause) == ("interference?system=lab&workload=nanogpt", True)
    assert [lead.is_of_cause for lead in others] == [False] * 3
    assert not [lead for lead in seen(lab, "lost").leads if lead.is_of_cause]


def test_an_unknown_run_is_named(lab: Store) -> None:
    with pytest.raises(NotFoundError, match="'nope'"):
        seen(lab, "nope")


def test_a_range_of_steps_is_a_state_of_the_page(lab: Store) -> None:
    part = seen(lab, "r3", from_step="5", to_step="9", only="steps")
    assert [chart.name for chart in part.charts] == ["steps", "ranks"]
    ribbon = part.charts[0]
    assert isinstance(ribbon, StepRibbon)
    assert (ribbon.steps, ribbon.band and ribbon.band.steps) == ((5, 6, 7, 8, 9), (5, 6, 7, 8, 9))
    whole = seen(lab, "r3", from_step="5", to_step="9")
    assert whole.coverage is not None
    assert (whole.charts[1], whole.coverage.steps) == (ribbon, 24)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"from_step": "-1"}, "from_step='-1': expected the number of a step"),
        ({"from_step": "9", "to_step": "5"}, "to_step=5: expected from_step, 9, or more"),
        ({"only": "all"}, "expected one of steps"),
    ],
)
def test_a_range_that_is_none_is_refused(lab: Store, parameters: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        seen(lab, "r3", **parameters)


def test_who_waited_for_whom_is_what_the_client_answers(lab: Store) -> None:
    shown = next(chart for chart in seen(lab, "r3").charts if isinstance(chart, WaitMap))
    waits = Local(lab).waits("r3")
    assert [(one.culprit, one.victim, one.steps) for one in shown.edges] == [
        (one.culprit, one.victim, one.steps) for one in waits.edges
    ]
    assert shown.lost_seconds == pytest.approx(waits.lost_seconds)
    assert (shown.culprits[0], shown.steps) == (1, waits.steps)


def test_strips_show_the_culprits_node_and_name_what_was_not_sampled(lab: Store) -> None:
    times = [START_NS + 180_000 * MS + number * 100 * MS for number in range(13)]
    for node, share in (("a", 0.1), ("b", 0.2)):
        keys = {"ts_ns": times, "node": [node] * 13, "device": ["all"] * 13, "boot_id": ["x"] * 13}
        grown = {"user_seconds_total": [2.0 + share * number for number in range(13)]}
        lab.lake.append(f"more-{node}", to_table(CPU, {**keys, **grown}))
    strips = next(chart for chart in seen(lab, "r3").charts if isinstance(chart, NodeStrips))
    assert (strips.node, strips.others, strips.axis) == ("b", 1, "step")
    [cpu] = strips.strips
    assert (cpu.name, cpu.own_mean, cpu.others_mean) == ("CPU", pytest.approx(2.0), pytest.approx(1.0))
    assert 3 <= min(cpu.places) < max(cpu.places) <= 24
    assert strips.title == "Node b differs most in CPU: 2.00 cores busy, the other nodes 1.00 cores busy"
    assert "Not sampled: memory available, network, busiest disk, GPU busy, power" in strips.sentence


def test_what_is_unlike_most_of_the_cohort_is_named(lab: Store) -> None:
    with lab.catalog.read() as session:
        runs = [session.runs.get(f"r{number}") for number in range(5)]
    own = replace(runs[0], software={"torch": "2.14"}, nodes=("a", "c"))
    assert unusual(own, runs[1:]) == (
        FactDifference("software.torch", "2.14", "2.13", 0),
        FactDifference("nodes", "c", "b", 0),
    )
    assert unusual(runs[0], runs[1:]) == ()
    assert unusual(own, runs[1:3]) == ()


@pytest.mark.parametrize(("ended_ago_ns", "keep_seconds"), [(2 * 3600 * 10**9, 60.0), (60 * 10**9, 0.0), (None, 0.0)])
def test_what_was_recorded_is_kept_once_a_run_has_ended_a_while_ago(
    lab: Store, ended_ago_ns: int | None, keep_seconds: float
) -> None:
    ended_ns = None if ended_ago_ns is None else time.time_ns() - ended_ago_ns
    with lab.catalog.write() as session:
        session.runs.merge(replace(session.runs.get("r3"), run_id="another", ended_ns=ended_ns))
    assert recorded(lab, "another", None).keep_seconds == keep_seconds


def test_a_strip_takes_the_next_source_where_the_first_has_no_values(lab: Store) -> None:
    times = [START_NS + 180_000 * MS + number * 100 * MS for number in range(13)]
    keys = {"ts_ns": times, "node": ["b"] * 13, "device": ["cpu0"] * 13, "boot_id": ["x"] * 13}
    lab.lake.append("cores", to_table(CPU, {**keys, "user_seconds_total": [0.2 * number for number in range(13)]}))
    strips = next(chart for chart in seen(lab, "r3").charts if isinstance(chart, NodeStrips))
    assert strips.strips[0].own_mean == pytest.approx(2.0)


def test_quantiles_of_nodes_leave_out_those_without_a_value() -> None:
    values = np.array([[1.0, np.nan, 5.0], [np.nan, np.nan, 7.0], [2.0, np.nan, 6.0], [4.0, np.nan, 8.0]])
    wanted = pd.DataFrame(values).quantile([0.1, 0.5, 0.9]).to_numpy()
    np.testing.assert_allclose(_quantiles(list(values)), wanted)
