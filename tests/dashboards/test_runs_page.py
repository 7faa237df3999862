import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.render import Address, render
from crosswind.dashboards.pages.runs import runs
from crosswind.dashboards.pages.runs.columns import short_ids
from crosswind.dashboards.pages.runs.runs import RunsView, view
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.schema.answers.explanations import Explanation, Interval, Verdict
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.features import FORM
from crosswind.models.explain.stored import verdict_of

Record = Callable[..., None]


def seen(store: Store, **query: str) -> RunsView:
    return view(Local(store), PageQuery(query))


def ids(shown: RunsView) -> list[str]:
    return [row.run.run_id for row in shown.rows]


def test_the_page_says_first_how_many_runs_were_slow_and_why(lab: Store) -> None:
    shown = seen(lab)
    assert shown.sentence == "1 of 5 runs was slow; CPU contention cost most."
    assert re.fullmatch(
        r"CPU contention: \d+ ms lost\. 1 run without enough evidence to judge\. 1 run not judged yet\.", shown.rest
    )
    assert shown.worst is not None
    assert (shown.worst.run.run_id, shown.worst.injected) == ("r3", "cpu_hog:1:2")
    assert "injected" in names(shown)
    assert ids(shown) == ["live", "lost", "r4", "r3", "r2", "r1", "r0"]


def names(shown: RunsView) -> list[str]:
    return [column.name for column in shown.columns]


def test_columns_are_chosen_and_those_without_a_value_are_left_out_by_default(lab: Store) -> None:
    usual = ["verdict", "run", "configuration", "job", "nodes", "ranks", "started", "seconds", "excess", "cause"]
    assert names(seen(lab, workload="bert")) == usual
    assert names(seen(lab, workload="bert", sort="p50")) == [*usual[:8], "p50", *usual[8:]]
    assert names(seen(lab, columns="user,cov")) == ["run", "user", "started", "cov"]


def test_runs_are_filtered_by_their_job_and_user(store: Store) -> None:
    with store.catalog.write() as session:
        for number, user in enumerate(("ann", "bob", "ann")):
            run = Run(f"r{number}", "w", "lab", RunState.COMPLETED, job_id=str(number // 2), user=user)
            session.runs.merge(run)
    assert ids(seen(store, user="ann")) == ["r2", "r0"]
    assert ids(seen(store, job="0", user="ann")) == ["r0"]
    assert "user" in names(seen(store))


def test_a_node_narrows_the_list_and_is_a_link_in_each_row(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(4):
            nodes = (f"n{number % 2}", "n9")
            session.runs.merge(Run(f"r{number}", "w", "lab", RunState.COMPLETED, nodes=nodes, started_ns=number))
    shown = seen(store, node="n1")
    assert (ids(shown), shown.matching) == (["r3", "r1"], 2)
    assert ids(seen(store, node="n9", limit="1")) == ["r3"]
    assert seen(store, node="n").rows == ()
    html = render(runs.PAGE, shown, Address(path="/runs", query={"node": "n1"}))
    assert 'name="node" value="n1"' in html
    assert '<a href="runs?node=n1" title="n1, n9">n1</a> <span class="muted">+1</span>' in html


def test_short_ids_are_as_long_as_tells_the_runs_apart() -> None:
    assert short_ids(["01AAAAAA111111", "01BBBBBB111111"]) == {
        "01AAAAAA111111": "A111111",
        "01BBBBBB111111": "B111111",
    }
    assert short_ids(["r1", "01AAAAAA222222"]) == {"r1": "r1", "01AAAAAA222222": "222222"}


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


def test_the_runs_that_match_are_counted(lab: Store) -> None:
    assert [seen(lab, **query).matching for query in ({}, {"verdict": "slow"}, {"workload": "bert"})] == [7, 1, 2]
    assert seen(lab, verdict="slow").sentence.startswith("1 of 1 run was slow")


def test_a_verdict_is_found_however_old_its_run_is(store: Store, slow: Explanation) -> None:
    crowd(store, 300)
    judge(store, {"r0003": slow})
    assert ids(seen(store, verdict="slow")) == ["r0003"]
    assert ids(seen(store, sort="-excess"))[0] == "r0003"
    shown = seen(store)
    assert shown.sentence == "1 of 1 run was slow; CPU contention cost most."
    assert shown.rest == (
        "CPU contention: 5.00 s lost. 50 runs without enough evidence to judge. 249 runs not judged yet."
    )
    assert shown.worst is not None
    assert shown.worst.run.run_id == "r0003"


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
        ({"sort": "colour"}, "sort='colour': expected one of started, -started"),
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


@pytest.mark.parametrize("sort", ["-started", "started", "-excess", "p50", "cause", "workload"])
def test_pages_follow_each_other_without_gap_or_repeat(lab: Store, sort: str) -> None:
    shown: list[str] = []
    before = None
    while True:
        part = view(Local(lab), PageQuery({"limit": "3", "sort": sort}, before=before))
        shown += ids(part)
        before = part.next_place
        if before is None:
            break
    assert shown == ids(seen(lab, sort=sort))
    assert sorted(shown) == ["live", "lost", "r0", "r1", "r2", "r3", "r4"]


@pytest.mark.parametrize("before", [(1, "r1"), (1, '["-excess", 1.0, "r1"]')])
def test_the_place_in_a_list_of_another_order_is_refused(lab: Store, before: tuple[int, str]) -> None:
    with pytest.raises(InvalidInputError, match="cursor: expected the place in a list sorted by -started"):
        view(Local(lab), PageQuery({}, before=before))


def test_pages_of_a_search_follow_each_other_too(lab: Store) -> None:
    first = seen(lab, q="nanogpt", limit="2")
    second = view(Local(lab), PageQuery({"q": "nanogpt", "limit": "3"}, before=first.next_place))
    assert (ids(first), ids(second), second.next_place) == (["r4", "r3"], ["r2", "r1", "r0"], None)


def test_no_more_runs_are_explained_than_are_shown(store: Store) -> None:
    crowd(store, 300)
    asked: list[int] = []
    shown = view(Local(store, explain_runs=counting(asked)), PageQuery({}))
    assert (asked, len(shown.rows), shown.asked.scope.stored) == ([50], 50, 300)


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
    judge(store, dict.fromkeys(["r0000", "r0001", "r0002"], replace(slow, verdict=Verdict.PERHAPS_SLOW)))
    assert (seen(store).sentence, seen(store).rest) == ("None of 3 runs was slow.", "3 perhaps were slow.")


def test_runs_that_were_all_slow_are_called_so(store: Store, slow: Explanation) -> None:
    crowd(store, 3)
    judge(store, dict.fromkeys(["r0000", "r0001", "r0002"], slow))
    assert seen(store).sentence == "All 3 runs were slow; CPU contention cost most."
    assert seen(store).rest == "CPU contention: 15.0 s lost."
    assert seen(store, limit="2").sentence == seen(store).sentence
    searched = seen(store, q="r000", limit="2")
    assert searched.sentence.startswith("All 2 runs shown were slow")


def test_what_no_counter_explains_is_not_blamed_on_a_cause(store: Store, slow: Explanation) -> None:
    crowd(store, 3)
    unknown = replace(slow, cause=None, excess=Interval(60.0, 50.0, 70.0))
    judge(store, {"r0000": slow, "r0001": unknown, "r0002": slow})
    assert seen(store).sentence == "All 3 runs were slow; most of the time lost is unexplained."
    assert seen(store).rest == "Unexplained: 60.0 s lost."


def judge(store: Store, explanations: Mapping[str, Explanation]) -> None:
    """Store explanations as if they had been computed."""
    for run_id, explanation in explanations.items():
        made = StoredFeatures(RunVerdict(run_id), 1, FORM, None, 0)
        text = json.dumps(asdict(replace(explanation, run_id=run_id)))
        verdict = verdict_of(replace(explanation, run_id=run_id))
        with store.catalog.write() as session:
            session.verdicts.put_features([made], {run_id: []})
            session.verdicts.put_verdict(verdict, text, revision=(1, 0), allowed=0)


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


def test_runs_are_filtered_by_their_main_cause(lab: Store) -> None:
    seen(lab)  # which judges them
    shown = seen(lab, cause="cpu_contention")
    assert (ids(shown), shown.matching, shown.causes) == (["r3"], 1, ("cpu_contention",))
    assert shown.asked.is_narrowed
    other = seen(lab, cause="no_such", verdict="slow")
    assert (ids(other), other.causes) == ([], ("cpu_contention", "no_such"))
    assert ids(seen(lab, cause="unexplained")) == []
