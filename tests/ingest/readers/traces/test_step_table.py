"""Tables of steps give a trace for each rank, with its stage and its pipeline as groups."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.step_table import StepTableReader

SHARED = Path(__file__).parents[5] / "shared/data/traces/steps"
COLUMNS: dict[str, list[object]] = {
    "dp_rank": [0, 0, 0, 0, 0],
    "stage": [0, 0, 1, 1, 0],
    "rank": [0, 0, 1, 1, 0],
    "step": [5, 5, 5, 5, 9],
    "optype": ["forward-compute", "forward-send", "forward-recv", "forward-compute", "forward-compute"],
    "start_ts": [0.0, 1.0, 0.0, 1.5, 0.25],
    "duration": [1.0, 0.5, 1.5, 1.0, 1.0],
    "seq_id": [0, 0, 0, 0, 0],
    "mb_id": [2, -1, -1, 2, 2],
}


def read(path: Path, **changed: list[object]) -> list[RankTrace]:
    """Write a table and read it."""
    pq.write_table(pa.table(COLUMNS | changed), path)
    assert StepTableReader().recognises(path, path.read_bytes())
    return list(StepTableReader().read(path, Report(str(path), "step_table")))


def test_steps_follow_one_another(tmp_path: Path) -> None:
    (tmp_path / "a.meta.yaml").write_text("world_size: 4\ntrial_name: ST\n")
    first, second = read(tmp_path / "a.parquet")
    assert (first.rank, first.world_size, first.run, second.rank) == (0, 4, "ST", 1)
    assert first.names_of(first.events.of(Kind.STEP)) == ["step 5", "step 9"]
    assert first.events.of(Kind.STEP).begin_ns.tolist() == [0, 2_500_000_000]
    compute = first.events.of(Kind.KERNEL)
    assert compute.begin_ns.tolist() == [0, 2_750_000_000]
    assert compute.operator.tolist() == [2, 2]
    assert [first.groups[code].name for code in compute.group] == ["stage 0", "stage 0"]
    [send] = first.events.of(Kind.COLLECTIVE).group
    assert (first.groups[send].name, first.groups[send].ranks) == ("pipeline 0", (0, 1))


@pytest.mark.parametrize("changed", [
    {"duration": [1.0, float("nan"), 1.0, 1.0, 1.0]}, {"start_ts": [0.0, 1e30, 0.0, 0.0, 0.0]},
    {"duration": [1.0, -1.0, 1.0, 1.0, 1.0]}, {"rank": ["a"] * 5}, {"step": [None] * 5},
    {"rank": [0, 0, 1, 1, -1]}, {"rank": [0.0, 0.5, 1.0, 1.0, 0.0]}, {"rank": [0, None, 1, 1, 0]}, {"stage": ["a"] * 5},
    {"optype": ["forward-compute"] * 4 + [None]}, {"mb_id": [0.5] * 5},
])  # fmt: skip
def test_values_that_are_no_times_are_an_error_that_names_the_file(
    tmp_path: Path, changed: dict[str, list[object]]
) -> None:
    with pytest.raises(MalformedError, match=r"a\.parquet"):
        read(tmp_path / "a.parquet", **changed)


@needs_data(SHARED)
def test_a_published_table_is_read_whole() -> None:
    traces = read_traces([SHARED / "bytedance_ST.parquet"])
    assert [trace.rank for trace in traces] == list(range(8))
    assert {len(trace.events.of(Kind.STEP)) for trace in traces} == {32}
    assert sum(len(trace.events) for trace in traces) == 6784 + 8 * 32
