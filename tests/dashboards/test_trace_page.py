import re
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from tests.dashboards.test_every_page import HOSTILE, Outline, html_of
from tests.serving import own_client, patient_app
from tests.traced_run import LATE_NS, store_traces, two_ranks

from crosswind.api.answer_cache import AnswerCache
from crosswind.cli.main import main
from crosswind.client import stored_traces
from crosswind.client.local import Local
from crosswind.dashboards.figures.traces.arrivals import ArrivalMatrix
from crosswind.dashboards.figures.traces.bars import own_name
from crosswind.dashboards.figures.traces.differing import waterfall_from
from crosswind.dashboards.figures.traces.pop import PopTable
from crosswind.dashboards.figures.traces.replays import Replays
from crosswind.dashboards.figures.traces.times import TimesOfRanks
from crosswind.dashboards.figures.traces.turns import steps_of_ranks, waits_of_ranks
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.runs.trace import TraceView, view
from crosswind.dashboards.trace_report import trace_page
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.trace_difference import DifferenceKind, DifferenceSide, PartKind, RunsDifference
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.store.store import Store
from crosswind.models.traces.report import trace_report
from crosswind.models.traces.report_what_if import trace_what_ifs

T = TypeVar("T")


def seen(store: Store, run_id: str) -> TraceView:
    return view(Local(store), PageQuery(run_id=run_id))


def figure(page: TraceView, kind: type[T]) -> T:
    return next(chart for chart in page.charts if isinstance(chart, kind))


def test_a_run_with_traces_has_the_figures_of_its_report(lab: Store) -> None:
    store_traces(lab, "r3")
    page = seen(lab, "r3")
    times = figure(page, TimesOfRanks)
    assert [rank.span_ns for rank in times.ranks] == [sum(part.ns for part in rank.parts) for rank in times.ranks]
    assert times.table.rows[1][1].startswith("50.0 \u00b5s")
    [late] = figure(page, ArrivalMatrix).late
    assert (late.rank, late.times_last, late.waited_ns) == (1, 1, (LATE_NS, 0))
    assert "rank 1" in figure(page, ArrivalMatrix).title
    assert figure(page, Replays).without == page.without[: len(figure(page, Replays).without)]
    assert not figure(page, PopTable).earlier


def test_metrics_stand_beside_those_of_earlier_runs_of_the_cohort_with_traces(lab: Store) -> None:
    for run_id in ("r1", "r3", "r4"):
        store_traces(lab, run_id)
    table = figure(seen(lab, "r3"), PopTable)
    assert [one.run_id for one in table.earlier] == ["r1"]
    assert table.table.headers[-1] == "earlier: r1"
    assert table.table.rows[0][1] == table.table.rows[0][-1]


def test_the_difference_is_from_the_run_that_the_reader_chooses(lab: Store) -> None:
    for run_id in ("r1", "r3", "r4"):
        store_traces(lab, run_id)
    page = view(Local(lab), PageQuery({"with": "r4"}, run_id="r3"))
    assert (page.compared, page.is_chosen, page.comparable) == ("r4", True, ("r4", "r1"))
    assert seen(lab, "r3").compared == "r1"
    with own_client(patient_app(lab), base_url="http://127.0.0.1") as client:
        html = html_of(client, "/runs/r3/trace?with=r4")
        assert "<option selected>r4</option>" in html
        assert "and A the newest" not in html
        assert "expected another run, which has traces" in html_of(client, "/runs/r3/trace?with=r3", status=422)
        assert "expected another run, which has traces" in html_of(client, "/runs/r3/trace?with=r0", status=422)
        html_of(client, "/runs/r3/trace?with=nope", status=404)


def test_a_run_without_traces_says_how_to_record_some(lab: Store) -> None:
    assert seen(lab, "r0").report is None
    with own_client(patient_app(lab), base_url="http://127.0.0.1") as client:
        html = html_of(client, "/runs/r0/trace")
        assert "<h1>No trace of this run is stored.</h1>" in html
        assert "crosswind run --trace auto -- torchrun" in html
        assert "crosswind ingest --run r0 rank*.json.gz" in html
        assert 'href="../runs/r0/trace"' in html_of(client, "/runs/r0")
        html_of(client, "/runs/nope/trace", status=404)
    with pytest.raises(NotFoundError):
        seen(lab, "nope")


def test_an_answer_is_kept_until_the_traces_change(lab: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    for name in ("traces_of_run", "stream_of_run"):
        reads = getattr(stored_traces, name)
        monkeypatch.setattr(
            stored_traces, name, lambda store, run_id, reads=reads: read.append(run_id) or reads(store, run_id)
        )
    store_traces(lab, "r3")
    client = Local(lab, compute=AnswerCache())
    view(client, PageQuery(run_id="r3"))
    assert read == ["r3"]
    store_traces(lab, "r4")  # of a later run
    view(client, PageQuery(run_id="r3"))
    assert read == ["r3"]
    store_traces(lab, "r1")
    view(client, PageQuery(run_id="r3"))
    assert read == ["r3", "r1", "r1", "r3"]  # its report, and the difference from it


def test_the_way_from_the_earlier_step_to_this_one_sums_and_needs_two_steps() -> None:
    sides = [DifferenceSide((0,), 9, seconds, "device") for seconds in (1.0, 1.5)]
    kinds = [
        DifferenceKind(kind, Interval(by, by - 0.1, by + 0.1), 1)
        for kind, by in ((PartKind.WAIT, -0.1), (PartKind.SLOWER, 0.5), (PartKind.IDLE, 0.0))
    ]
    rest = Interval(0.1, 0.0, 0.2)
    answer = RunsDifference("", sides[0], sides[1], Interval(0.5, 0.4, 0.6), tuple(kinds), (), rest, ())
    way = waterfall_from(answer, "r1")
    assert way is not None
    assert [drop.cause for drop in way.drops] == ["operators slower", "communication, wait", "unexplained"]
    assert way.drops[-1].end == pytest.approx(way.measured_seconds)
    assert way.title.startswith("Operators slower took 500 ms of 500 ms")
    unknown = replace(answer, seconds=Interval(0.5, float("nan"), float("nan")))
    assert waterfall_from(unknown, "r1") is None


def test_the_main_table_is_the_ranks(lab: Store) -> None:
    store_traces(lab, "r3")
    with own_client(patient_app(lab), base_url="http://127.0.0.1") as client:
        lines = client.get("/runs/r3/trace.csv").text.splitlines()
        assert [line.split(",")[0] for line in lines] == ["rank", "0", "1"]
        assert client.get("/runs/r3/trace.json").json()["report"]["slowest_rank"] == 1
        assert '<a href="../../v1/runs/r3/trace/perfetto" download>' in html_of(client, "/runs/r3/trace")


def test_long_steps_are_joined_and_missing_ones_are_gaps() -> None:
    first, second = trace_report(two_ranks()).ranks
    grid = steps_of_ranks([replace(first, step_ns=tuple(range(1, 401))), replace(second, step_ns=(5, 6))])
    assert grid is not None
    assert (grid.steps_a_column, len(grid.columns), grid.columns[-1]) == (3, 134, 400)
    assert [row[:2] for row in grid.ns] == [(3, 6), (6, None)]
    assert grid.title.startswith("Step 400 takes longest")
    assert steps_of_ranks([first]) is None


def test_exposed_waits_are_by_step_and_rank() -> None:
    first, second = trace_report(two_ranks()).ranks
    assert waits_of_ranks([first, second]) is None  # one step is no grid
    grid = waits_of_ranks([replace(first, step_wait_ns=(5, 900)), replace(second, step_wait_ns=(8, 0))])
    assert grid is not None
    assert grid.ns == ((5, 900), (8, 0))
    assert grid.title == "Rank 0 waits longest, 900 ns in step 2"
    assert waits_of_ranks([replace(first, step_wait_ns=(0, 0))]) is None


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("void at::native::(anonymous namespace)::add_kernel<4, int>(int)", "add_kernel<4, int>(int)"),
        ("aten::mm", "aten::mm"),
        ("gemm", "gemm"),
    ],
)
def test_a_kernel_is_named_without_its_namespaces(name: str, own: str) -> None:
    assert own_name(name) == own


def test_traces_of_files_are_a_page_without_requests_and_hostile_names_are_text() -> None:
    traces = two_ranks(mark=HOSTILE)
    html = trace_page(trace_report(traces), trace_what_ifs(traces))
    page = Outline(html)
    assert not page.all("img")
    assert "alert(1)" in html
    assert "default-src 'none'" in html
    assert {attributes["href"] for attributes in page.all("a")} == {"#main"}
    assert not [attributes for _, attributes in page.elements if "src" in attributes or "action" in attributes]
    assert len(re.findall('data-figure="', html)) >= 7
    assert "/v1/" not in html


def test_the_command_writes_the_page(tmp_path: Path, lab: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store_traces(lab, "r3")
    monkeypatch.setenv("CROSSWIND_HOME", str(lab.home))
    file = tmp_path / "report.html"
    assert main(["trace", "--run", "r3", "--html", str(file)]) == 0
    assert "Trace of nanogpt r3" in file.read_text()
