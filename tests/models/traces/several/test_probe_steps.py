"""A run without traces is analysed from the probe's records of its steps."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.asking import asking
from tests.traced_run import store_traces

from crosswind.client.local import Local
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.data.traces.trace import Kind
from crosswind.models.traces.report_what_if import report_and_what_ifs
from crosswind.models.traces.several.probe_steps import ranks_of_run

RANKS, STEPS, STEP_NS = 2, 20, 10_000_000
COMPUTE_NS = (4_000_000, 7_000_000)  # of each rank: the second is slow, and the first waits


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with the steps of one run."""
    with Store.open(tmp_path_factory.mktemp("probed") / "store") as opened:
        with opened.catalog.write() as session:
            session.runs.merge(Run("RUN", "gpt", "lab", RunState.COMPLETED, RANKS, started_ns=0, ended_ns=10**9))
        opened.lake.append("steps", steps())
        yield opened


def steps() -> pa.Table:
    """The records of steps: input, computation, and the wait for the slow rank with 1 ms of transfer."""
    rows = [(step, rank) for step in range(STEPS) for rank in range(RANKS)]
    compute = [COMPUTE_NS[rank] for _, rank in rows]
    columns = {
        "ts_ns": [step * STEP_NS for step, _ in rows],
        "run_id": ["RUN"] * len(rows),
        "rank": [rank for _, rank in rows],
        "step": [step for step, _ in rows],
        "duration_seconds": [STEP_NS] * len(rows),
        "input_seconds": [2_000_000] * len(rows),
        "compute_seconds": compute,
        "comm_seconds": [STEP_NS - 2_000_000 - ns for ns in compute],
        "checkpoint_seconds": [0] * len(rows),
        "other_seconds": [0] * len(rows),
    }
    schema = arrow_schema(STEP)
    arrays = [pa.array(columns.get(one.name, [None] * len(rows)), one.type) for one in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def test_phases_become_events_that_sum_to_the_steps(store: Store) -> None:
    traces = list(ranks_of_run(store, "RUN"))
    assert [trace.rank for trace in traces] == list(range(RANKS))
    for trace in traces:
        marked = trace.events.of(Kind.STEP)
        phases = trace.events.where(trace.events.kind != Kind.STEP)
        assert len(marked) == STEPS - WARM_UP_STEPS
        assert phases.duration_ns.sum() == marked.duration_ns.sum() == len(marked) * STEP_NS
        assert phases.end_ns.max() == marked.end_ns.max()


def test_steps_give_breakdown_arrivals_efficiency_and_replays(store: Store) -> None:
    report, without = report_and_what_ifs(ranks_of_run(store, "RUN"))
    for rank in report.ranks:
        assert sum(part.ns for part in rank.parts) == rank.span_ns
    assert report.slowest_rank == 1
    assert report.ranks[0].waited_for_ns == (0, (STEPS - WARM_UP_STEPS) * 3_000_000)
    [pop] = report.pop
    assert (pop.over, pop.estimated) == ("hosts", True)
    assert pop.parallel_efficiency == pytest.approx(0.55)
    saved = {one.cause: one.saved_ns_per_step for one in without}
    assert saved["rank 1 slower than rank 0"] == pytest.approx(3_000_000, rel=0.01)
    assert saved["transfers"] == pytest.approx(1_000_000, rel=0.01)  # what the slow rank, which waits least, spends
    on_path = {part.name: part.ns for part in report.critical_path.works}
    assert on_path["transfer"] == (STEPS - WARM_UP_STEPS) * 1_000_000


def test_the_client_and_the_command_report_on_steps(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Local(store).trace("RUN", top=2)
    assert report.formats == ("probe",)
    monkeypatch.setenv("CROSSWIND_HOME", str(store.home))
    code, said, _ = asking(capsys)("trace", "--run", "RUN", "--json", "--top", "2")
    assert (code, json.loads(said)["verdict"]) == (0, report.verdict)
    code, said, _ = asking(capsys)("trace", "what-if", "--run", "RUN", "--without", "communication", "--json")
    assert (code, json.loads(said)[0]["cause"]) == (0, "transfers")


def test_traces_come_before_steps_and_without_both_there_is_no_answer(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for run_id in ("traced", "bare"):
            with store.catalog.write() as session:
                session.runs.merge(Run(run_id, "gpt", "lab", RunState.COMPLETED, 2, started_ns=1, ended_ns=10**9))
        store_traces(store, "traced")
        assert [trace.format for trace in ranks_of_run(store, "traced")] == ["kineto", "kineto"]
        for run_id in ("bare", "nobody"):
            with pytest.raises(NotFoundError, match=run_id):
                list(ranks_of_run(store, run_id))
