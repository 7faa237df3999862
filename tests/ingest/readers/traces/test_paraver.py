"""Paraver's traces give a trace for each task: useful computation, messages, and counters of hardware."""

import csv
import gzip
from pathlib import Path

import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.paraver import ParaverReader

SHARED = Path(__file__).parents[5] / "shared/data/traces/paraver"
HEADER = "#Paraver (09/10/2019 at 16:09):1000_ns:2(1,1):1:2(1:1,1:2),1"
BODY = """c:1:1:2:1:2
1:1:1:1:1:0:100:1
1:2:1:2:1:0:150:1
2:1:1:1:1:100:50000002:10:50100001:8:50100002:64:50100004:1:42000050:1000:42000059:2000
1:1:1:1:1:100:160:13
2:2:1:2:1:150:50000002:10:42000050:700
1:1:1:1:1:160:300:1
2:1:1:1:1:160:50000002:0:42000050:5:42000059:7:70000001:3
2:1:1:1:1:300:42000050:11
1:1:1:1:1:300:310:12
3:1:1:1:1:200:200:2:1:2:1:210:240:4096:0
2:2:1:2:1:180:50000002:0
"""
LABELS = """STATES
1    Running

EVENT_TYPE
9   50000001    MPI Point-to-point
9   50000002    MPI Collective Comm
VALUES
10   MPI_Allreduce
0   Outside MPI


EVENT_TYPE
7  42000050 PAPI_TOT_INS [Instr completed]
7  42000059 PAPI_TOT_CYC [Total cycles]
"""


def written(folder: Path, body: str = BODY, header: str = HEADER) -> Path:
    """A trace with its labels."""
    path = folder / "a.prv.gz"
    path.write_bytes(gzip.compress(f"{header}\n{body}".encode()))
    (folder / "a.pcf").write_text(LABELS)
    (folder / "a.row").write_text("LEVEL NODE SIZE 2\nn1\nn2\n\nLEVEL THREAD SIZE 2\n")
    return path


def read(path: Path) -> tuple[list[RankTrace], Report]:
    """Return all ranks."""
    report = Report(str(path), "paraver")
    return list(ParaverReader().read(path, report)), report


def test_a_task_is_a_rank(tmp_path: Path) -> None:
    (first, second), report = read(written(tmp_path))
    assert report.skipped == 0
    assert (first.rank, first.world_size, first.node, second.node) == (0, 2, "n1", "n2")
    events = first.events
    rows = zip(first.names_of(events), map(Kind, events.kind), events.begin_ns, events.duration_ns, strict=True)
    assert [tuple(map(int, row[2:])) + row[:2] for row in rows] == [
        (0, 100, "Running", Kind.USEFUL),
        (100, 60, "MPI_Allreduce", Kind.MESSAGE),
        (160, 140, "Running", Kind.USEFUL),
        (200, 40, "message to 1", Kind.ANNOTATION),
        (300, 10, "I/O", Kind.IO),
    ]
    call = events.of(Kind.MESSAGE)
    assert (call.bytes.tolist(), first.groups[call.group[0]].ranks) == ([64], (0, 1))
    assert first.counters == {"instructions": 1011.0, "cycles": 2000.0}
    assert second.names_of(second.events.of(Kind.ANNOTATION)) == ["message from 0"]
    assert second.events.of(Kind.ANNOTATION).correlation.tolist() == [1]


def test_times_are_microseconds_unless_the_header_says_otherwise(tmp_path: Path) -> None:
    (first, _), _ = read(written(tmp_path, header=HEADER.replace("_ns", "")))
    assert first.events.of(Kind.USEFUL).duration_ns.tolist() == [100_000, 140_000]
    assert first.resolution_ns == 1000


def test_without_labels_numbers_are_names(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "a.pcf").unlink()
    (first, _), report = read(path)
    assert "event 50000002 10" in first.names
    assert any("a.pcf" in note for note in report.notes)


BAD = [
    "x", "1:1:1:1", "9:1", "1:1:1:3:1:0:5:1", "1:1:2:1:1:0:5:1", "2:1:1:1:1:0:5", "1:1:1:1:1:0:99999999999999999999:1",
    "1:1:1:1:1:-5:5:1", "3:1:1:1:1:200:200:2:1:9:1:210:240:4096:0", "c:1", "2:1:1:1:1:5:x:y",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_a_bad_record_is_reported_and_others_are_read(tmp_path: Path, line: str) -> None:
    traces, report = read(written(tmp_path, BODY + line + "\n"))
    assert len(traces) == 2
    assert report.skipped == 1
    assert report.quoted[0].line == 14


@pytest.mark.parametrize(("header", "body"), [("#Paraver (x", BODY), ("#Paraver (x):1:1:0:", BODY), (HEADER, "")])
def test_no_records_are_an_error_that_names_the_file(tmp_path: Path, header: str, body: str) -> None:
    with pytest.raises(MalformedError, match=r"a\.prv\.gz"):
        read(written(tmp_path, body, header))


@needs_data(SHARED)
def test_useful_computation_and_its_counters_equal_the_published_ones() -> None:
    with (SHARED / "modelfactors_1_2_4.csv").open() as stream:
        published = {row[0]: row[1:] for row in csv.reader(stream, delimiter=";")}
    for column, processes in enumerate((1, 2, 4)):
        traces = read_traces([SHARED / f"epoch_{processes}proc.prv.gz"])
        useful_us = [int(trace.events.of(Kind.USEFUL).duration_ns.sum()) / 1000 for trace in traces]
        expected = [
            float(published[f"#Useful {name}"][column]) for name in ("duration (average)", "duration (maximum)")
        ]
        assert [sum(useful_us) / processes, max(useful_us)] == pytest.approx(expected, abs=0.006)
        for name in ("instructions", "cycles"):
            total = sum(trace.counters[name] for trace in traces)
            assert total == float(published[f"#Useful {name} (total)"][column])
