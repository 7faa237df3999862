import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.runs.run import Coverage, RunPageView, view
from crosswind.dashboards.queries import NodeSource
from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.store.store import Store


def seen(store: Store, run_id: str) -> RunPageView:
    return view(Local(store), PageQuery({}, run_id))


def test_a_slow_run_has_every_figure_and_a_cause(lab: Store) -> None:
    shown = seen(lab, "r3")
    assert [chart.name for chart in shown.charts] == ["waterfall", "steps", "ranks", "phases"]
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
    assert [chart.name for chart in shown.charts] == ["steps", "ranks", "phases"]
    assert seen(lab, "lost").charts == ()


def test_a_run_leads_to_the_page_that_knows_more_of_its_cause(lab: Store) -> None:
    first, *others = seen(lab, "r3").leads
    assert (first.address, first.is_of_cause) == ("interference?system=lab&workload=nanogpt", True)
    assert [lead.is_of_cause for lead in others] == [False] * 3
    assert not [lead for lead in seen(lab, "lost").leads if lead.is_of_cause]


def test_an_unknown_run_is_named(lab: Store) -> None:
    with pytest.raises(NotFoundError, match="'nope'"):
        seen(lab, "nope")
