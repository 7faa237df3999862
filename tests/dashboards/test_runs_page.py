import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages import runs
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.render import Address, render
from crosswind.dashboards.pages.runs import RunsView, view
from crosswind.data.schema.answers.explanations import Explanation, Interval, Verdict
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

Record = Callable[..., None]


def seen(store: Store, **query: str) -> RunsView:
    return view(Local(store), PageQuery(query))


def ids(shown: RunsView) -> list[str]:
    return [row.run.run_id for row in shown.rows]


def test_the_page_says_first_how_many_runs_were_slow_and_why(lab: Store) -> None:
    shown = seen(lab)
    assert re.fullmatch(
        r"1 of 5 runs was slow; the largest cause was CPU contention, \d+ ms lost\. "
        r"2 runs without enough evidence to judge\.",
        shown.sentence,
    )
    assert shown.worst is not None
    assert (shown.worst.run.run_id, shown.worst.injected) == ("r3", "cpu_hog:1:2")
    assert shown.has_truth
    assert ids(shown) == ["live", "lost", "r4", "r3", "r2", "r1", "r0"]


def test_a_run_without_steps_has_no_numbers(lab: Store) -> None:
    lost = next(row for row in seen(lab).rows if row.run.run_id == "lost")
    assert (lost.steps, lost.step_p50_seconds, lost.step_cov_ratio, lost.ratio) == (None, None, None, None)


def test_step_times_leave_warm_up_out(lab: Store) -> None:
    row = next(row for row in seen(lab).rows if row.run.run_id == "r0")
    assert row.steps == 21
    assert row.step_p50_seconds == pytest.approx(0.0454, abs=0.0005)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"workload": "bert"}, ["live", "lost"]),
        ({"state": "lost"}, ["lost"]),
        ({"verdict": "slow"}, ["r3"]),
        ({"q": "CPU_hog nanogpt"}, ["r3"]),
        ({"q": "batch_size=8 bert"}, ["live", "lost"]),
        ({"q": "no such thing"}, []),
        ({"workload": " ", "state": "", "q": ""}, ["live", "lost", "r4", "r3", "r2", "r1", "r0"]),
    ],
)
def test_filters_narrow_the_list(lab: Store, query: dict[str, str], expected: list[str]) -> None:
    assert ids(seen(lab, **query)) == expected


def test_a_verdict_filter_tells_how_many_it_left_out(lab: Store) -> None:
    assert seen(lab, verdict="slow").hidden == 6


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("p50", ["r0", "r1", "r2", "r4", "r3"]),
        ("-p50", ["r3", "r4", "r2", "r1", "r0"]),
        ("-excess", ["r3"]),
        ("started", ["r0", "r1", "r2", "r3", "r4"]),
    ],
)
def test_order_is_by_any_column_with_the_unknown_last(lab: Store, sort: str, expected: list[str]) -> None:
    shown = ids(seen(lab, sort=sort, workload="nanogpt"))
    assert shown[: len(expected)] == expected
    assert ids(seen(lab, sort=sort))[-1] in {"lost", "live"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "sleeping"}, "state='sleeping': expected one of running"),
        ({"verdict": "bad"}, "verdict='bad': expected one of slow, perhaps_slow, one_rank_delays, normal"),
        ({"sort": "colour"}, "sort='colour': expected one of verdict, -verdict"),
        ({"limit": "0"}, "limit='0': expected a whole number from 1 to 200"),
        ({"limit": "1e3"}, "limit='1e3': expected a whole number"),
        ({"limit": "-1"}, "limit='-1'"),
        ({"limit": "\u0662"}, "limit="),
    ],
)
def test_a_value_that_is_none_is_named_with_what_was_expected(
    store: Store, query: dict[str, str], expected: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        seen(store, **query)
    assert expected in str(refused.value)


def test_pages_follow_each_other_without_gap_or_repeat(lab: Store) -> None:
    shown: list[str] = []
    before = None
    while True:
        part = view(Local(lab), PageQuery({"limit": "3"}, before=before))
        shown += ids(part)
        before = part.next_place
        if before is None:
            break
    assert shown == ["live", "lost", "r4", "r3", "r2", "r1", "r0"]


def test_pages_of_a_search_follow_each_other_too(lab: Store) -> None:
    first = seen(lab, q="nanogpt", limit="2")
    second = view(Local(lab), PageQuery({"q": "nanogpt", "limit": "3"}, before=first.next_place))
    assert (ids(first), ids(second), second.next_place) == (["r4", "r3"], ["r2", "r1", "r0"], None)


def test_no_more_runs_are_explained_than_are_shown(store: Store) -> None:
    crowd(store, 300)
    asked: list[int] = []
    shown = view(Local(store, explain_runs=counting(asked)), PageQuery({}))
    assert (asked, len(shown.rows), shown.stored) == ([50], 50, 300)


def test_fifty_runs_are_a_page_in_less_than_three_tenths_of_a_second(store: Store, record: Record) -> None:
    for number in range(50):
        record(store, f"run{number:02}", minute=number)
    times = []
    for _ in range(5):  # the best of five: what else runs on this machine is not the page's time
        started = time.process_time()
        html = render(runs.PAGE, view(Local(store, explain_runs=counting([])), PageQuery({})), Address("./", "/runs"))
        times.append(time.process_time() - started)
    assert html.count('class="row-link"') == 50
    assert min(times) < 0.3


def test_what_differs_between_runs_is_shown_of_their_configurations(store: Store, record: Record) -> None:
    for number in range(2):
        record(store, f"r{number}", steps=0, configuration={"a": 1, "b": 2, "c": 3, "threads": number})
    assert {row.configuration for row in seen(store).rows} == {"threads=0 +3", "threads=1 +3"}


def test_runs_that_were_all_normal_are_called_so(store: Store, record: Record) -> None:
    for number in range(4):
        record(store, f"r{number}", minute=number)
    assert seen(store).sentence == "None of 4 runs was slow."
    assert seen(store).worst is None


def test_runs_that_were_perhaps_slow_are_counted_too(store: Store, slow: Explanation) -> None:
    crowd(store, 3)
    explanation = replace(slow, verdict=Verdict.PERHAPS_SLOW)
    explain = lambda _, wanted: {run.run_id: replace(explanation, run_id=run.run_id) for run in wanted}  # noqa: E731
    assert (
        view(Local(store, explain_runs=explain), PageQuery({})).sentence == "None of 3 runs was slow. 3 perhaps were."
    )


def test_runs_that_were_all_slow_are_called_so(store: Store, slow: Explanation) -> None:
    crowd(store, 3)
    explain = lambda _, wanted: {run.run_id: replace(slow, run_id=run.run_id) for run in wanted}  # noqa: E731
    shown = view(Local(store, explain_runs=explain), PageQuery({}))
    assert shown.sentence == "All 3 runs were slow; the largest cause was CPU contention, 12.0 s lost."
    part = view(Local(store, explain_runs=explain), PageQuery({"limit": "2"}))
    assert part.sentence.startswith("All 2 runs shown were slow")


def test_what_no_counter_explains_is_not_blamed_on_a_cause(store: Store, slow: Explanation) -> None:
    crowd(store, 3)
    unexplained = replace(slow, unexplained=Interval(60.0, 50.0, 70.0))
    explain = lambda _, wanted: {run.run_id: replace(unexplained, run_id=run.run_id) for run in wanted}  # noqa: E731
    shown = view(Local(store, explain_runs=explain), PageQuery({}))
    assert shown.sentence == "All 3 runs were slow; most of the time lost, 3 min 0 s, is unexplained."


def crowd(store: Store, size: int) -> None:
    with store.catalog.write() as session:
        for number in range(size):
            session.runs.merge(Run(f"r{number:04}", "w", "lab", RunState.COMPLETED, started_ns=number))


def counting(asked: list[int]) -> Callable[[Store, Sequence[Run]], Mapping[str, Explanation]]:
    """Abstains from explaining, and notes how many runs it was asked about."""

    def explain(_: Store, wanted: Sequence[Run]) -> Mapping[str, Explanation]:
        asked.append(len(wanted))
        return {run.run_id: Explanation(run.run_id, Verdict.INSUFFICIENT_EVIDENCE, "", "", 0, 0) for run in wanted}

    return explain
