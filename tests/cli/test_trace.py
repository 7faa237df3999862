"""`crosswind trace`: reports of files and stored runs, replays, one file for Perfetto; and traces into the store."""

import gzip
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import Ask, asking
from tests.traced_run import LATE_NS, two_ranks

from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import traces_of_run
from crosswind.data.traces.perfetto import write_perfetto
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.kineto import KinetoReader

DLRM8 = Path(__file__).parents[3] / "shared/data/traces/kineto/dlrm8"
BEGIN_NS = 1_700_000_000_000_000_000
CAPTURES = "one of 2 captures of the run, that of most ranks; left out: rank1.json.gz"
HOSTILE = "\x1b[2J<script>alert(1)</script>"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return written(tmp_path / "traces")


def written(folder: Path, mark: str = "", begin_ns: int = BEGIN_NS) -> list[str]:
    """Write the traces of two ranks, a file each."""
    folder.mkdir(parents=True)
    paths = [folder / f"rank{rank}.json.gz" for rank in range(2)]
    for path, trace in zip(paths, two_ranks(begin_ns, mark=mark), strict=True):
        write_perfetto([trace], [trace.rank or 0], path)
        facts = {
            **json.loads(gzip.decompress(path.read_bytes())),
            "distributedInfo": {"rank": trace.rank, "world_size": 2},
        }
        path.write_bytes(gzip.compress(json.dumps(facts).encode()))
    return [str(path) for path in paths]


def test_the_report_begins_with_the_rank_that_others_wait_for(ask: Ask, files: list[str], home: Path) -> None:
    code, said, error = ask("trace", *files)
    assert (code, error) == (0, "")
    assert said.startswith("On the devices of 2 ranks: ")
    assert "The others wait longest for rank 1: 40 µs each, " in said
    assert "gemm" in said
    assert not home.exists()


def test_the_report_for_machines_sums_to_the_span(ask: Ask, files: list[str]) -> None:
    code, said, _ = ask("trace", *files, "--json", "--top", "1")
    report = json.loads(said)
    assert code == 0
    assert report["slowest_rank"] == 1
    assert report["ranks"][0]["waited_for_ns"] == [0, LATE_NS]
    assert len(report["kernels"]) == 1
    for rank in report["ranks"]:
        assert sum(part["ns"] for part in rank["parts"]) == rank["span_ns"]
    assert "NaN" not in said


def test_the_report_as_a_page_is_one_file_in_which_names_are_inert(ask: Ask, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, said, _ = ask("trace", *written(tmp_path / "hostile", HOSTILE), "--html", str(page))
    assert code == 0
    assert "\x1b" not in said
    text = page.read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert re.search(r"src=.?(https?:)?//", text) is None


def test_without_the_late_rank_the_run_is_shorter(ask: Ask, files: list[str]) -> None:
    code, said, _ = ask("trace", "what-if", *files, "--without", "slow-rank", "--steps", "1000", "--json")
    [answer] = json.loads(said)
    assert code == 0
    assert answer["slowdown"] > 1.3
    assert answer["saved_seconds"] == pytest.approx(answer["saved_ns_per_step"] * 1000 / 1e9)
    code, said, _ = ask("trace", "what-if", *files)
    assert code == 0
    assert "transfers" in said


def test_files_may_stand_behind_the_options_of_an_action(ask: Ask, files: list[str], tmp_path: Path) -> None:
    words = ["--without", "slow-rank"]
    assert ask("trace", "what-if", *words, *files) == ask("trace", "what-if", *files, *words)
    assert ask("trace", "merge", "-o", str(tmp_path / "m.json"), *files)[0] == 0
    assert ask("trace", "diff", "--top", "1", *files)[0] == 0
    code, _, error = ask("trace", "what-if", *words, *files, "--causes")
    assert (code, f"unrecognized arguments: {' '.join(files)} --causes" in error) == (2, True)


def test_a_run_traced_twice_is_reported_of_the_capture_of_most_ranks(ask: Ask, tmp_path: Path) -> None:
    early, late = written(tmp_path / "early"), written(tmp_path / "late", begin_ns=BEGIN_NS + 120 * 10**9)
    ask("ingest", *early, "--run", "RUN-1")
    alone = json.loads(ask("trace", "--run", "RUN-1", "--json")[1])
    assert not [note for note in alone["notes"] if "captures" in note]
    ask("ingest", late[1], "--run", "RUN-1")
    answer = json.loads(ask("trace", "--run", "RUN-1", "--json")[1])
    assert answer["notes"] == [CAPTURES, *alone["notes"]]
    assert answer | {"notes": []} == alone | {"notes": []}
    ask("ingest", late[0], "--run", "RUN-1")
    newer = json.loads(ask("trace", "--run", "RUN-1", "--json")[1])
    assert {rank["source"] for rank in newer["ranks"]} == set(late)
    assert newer["span_ns"] == alone["span_ns"]
    assert ask("trace", "merge", "--run", "RUN-1", "-o", str(tmp_path / "all.json"))[0] == 0
    events = json.loads((tmp_path / "all.json").read_bytes())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 20


def test_a_trace_is_not_overwritten_by_its_merge_and_no_merge_is_a_trace(ask: Ask, files: list[str]) -> None:
    before = Path(files[1]).read_bytes()
    code, _, error = ask("trace", "merge", *files, "-o", files[1])
    assert (code, "a trace to merge; expected another file" in error) == (2, True)
    assert Path(files[1]).read_bytes() == before
    folder = Path(files[0]).parent
    once = ask("trace", str(folder))
    assert ask("trace", "merge", str(folder), "-o", str(folder / "all.json.gz"))[0] == 0
    assert ask("trace", str(folder)) == once
    code, _, error = ask("trace", str(folder / "all.json.gz"))
    assert (code, "ranks that `crosswind trace merge` wrote together; expected a file of each" in error) == (2, True)


def test_merged_ranks_are_one_file_that_our_reader_takes(ask: Ask, files: list[str], tmp_path: Path) -> None:
    merged = tmp_path / "merged.json.gz"
    assert ask("trace", "merge", *files, "-o", str(merged))[0] == 0
    events = json.loads(gzip.decompress(merged.read_bytes()))["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"stream 7", "thread 1"}
    [trace] = KinetoReader().read(merged, Report(str(merged), "kineto"))
    singles = read_traces(map(Path, files))
    assert len(trace.events) == sum(len(single.events) for single in singles)
    assert int(trace.events.begin_ns.min()) == min(int(single.events.begin_ns.min()) for single in singles)
    assert sorted(trace.events.duration_ns) == sorted(np.concatenate([one.events.duration_ns for one in singles]))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no files; expected FILE... or --run RUN"),
        (["FILE", "--run", "x"], "both files and --run"),
        (["FILE", "-o", "x.json"], "--output: is of `crosswind trace merge`"),
        (["FILE", "--without", "communication"], "--without: is of `crosswind trace what-if`"),
        (["what-if", "FILE", "--without", "rain"], "'rain': expected slow-rank, rank:N"),
        (["what-if", "FILE", "--without", "rank:7"], "rank 7: not among rank"),
        (["what-if", "FILE", "--without", "kernels:("], "expected a regular expression"),
        (["what-if", "FILE", "--without", "stages"], "the traces name no pipeline"),
        (["merge", "FILE"], "-o is 'missing', expected a file *.json"),
        (["merge", "FILE", "-o", "x.txt"], "expected a file *.json or *.json.gz"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_is_expected(
    ask: Ask, files: list[str], words: list[str], reason: str
) -> None:
    code, _, error = ask("trace", *(files[0] if word == "FILE" else word for word in words))
    assert code == 2
    assert reason in error


def test_traces_are_stored_once_and_open_again_exactly(ask: Ask, files: list[str], home: Path) -> None:
    code, said, _ = ask("ingest", *files, "--run", "RUN-1", "--json")
    assert (code, json.loads(said)["loaded"]["rows"]) == (0, 12)
    code, said, _ = ask("ingest", *files, "--run", "RUN-1", "--json")
    assert (code, json.loads(said)["loaded"]["rows"], json.loads(said)["loaded"]["duplicates"]) == (0, 0, 2)
    copy = shutil.copy(files[0], f"{files[0]}.copy.json.gz")
    code, said, _ = ask("ingest", copy, "--run", "RUN-1", "--json")
    assert (code, json.loads(said)["loaded"]["rows"]) == (0, 0)
    with Store.open(home) as store:
        for stored, read in zip(traces_of_run(store, "RUN-1"), read_traces(map(Path, files)), strict=True):
            assert stored.names_of(stored.events) == read.names_of(read.events)
            for name in ("begin_ns", "duration_ns", "kind", "correlation", "sequence", "bytes"):
                assert np.array_equal(stored.events.columns[name], read.events.columns[name]), name
            assert stored.groups == read.groups
            assert (stored.rank, stored.world_size, stored.format) == (read.rank, read.world_size, read.format)


def test_a_stored_run_is_reported_as_its_files_are(ask: Ask, files: list[str]) -> None:
    ask("ingest", *files, "--run", "RUN-1")
    stored, read = (json.loads(ask("trace", *words, "--json")[1]) for words in (["--run", "RUN-1"], files))
    assert stored["ranks"] == read["ranks"]
    assert stored["pop"] == read["pop"]
    assert stored["verdict"] == read["verdict"]


def test_what_the_files_leave_open_is_noted_of_a_stored_run_too(ask: Ask, tmp_path: Path) -> None:
    events = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": ts, "dur": 9} for ts in (0, 20)]
    slower = [event | {"ts": event["ts"] * 1000, "dur": 9000} for event in events]
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    for path, content in zip(paths, (events, slower), strict=True):
        path.write_text(json.dumps({"traceEvents": content}))
    ask("ingest", *map(str, paths), "--run", "RUN-1")
    stored, read = (
        json.loads(ask("trace", *words, "--json")[1])["notes"] for words in (["--run", "RUN-1"], map(str, paths))
    )
    assert stored == read
    for words in ("no rank is stated: 1", "no steps are marked", "are the times of one in other units?"):
        assert words in " ".join(read)
    ask("ingest", str(paths[0]), "--run", "RUN-2")
    assert "one rank only: waits for others cannot be seen" in ask("trace", "--run", "RUN-2")[1]


def test_without_traces_the_message_says_how_to_store_some(ask: Ask, home: Path, files: list[str]) -> None:
    code, _, error = ask("trace", "--run", "RUN-1")
    assert (code, "run 'RUN-1' is not stored" in error) == (2, True)
    code, _, error = ask("ingest", *files, "--run", "RUN-1", "--dry-run")
    assert (code, "--run: expected files of traces" in error) == (2, True)
    code, said, _ = ask("ingest", *files, "--run", "../x")
    assert (code, "those that are; for a new one expected 4 to 200 letters" in said) == (2, True)
    code, _, error = ask("trace", "diff", "RUN-1", "RUN-2", "--last-step")
    assert (code, "--last-step: is of traces in files" in error) == (2, True)


@pytest.mark.skipif(not DLRM8.is_dir(), reason="needs the shared traces")
def test_the_public_trace_of_eight_ranks_names_the_late_rank(ask: Ask, tmp_path: Path) -> None:
    code, said, _ = ask("trace", str(DLRM8), "--json", "--html", str(tmp_path / "r.html"))
    report = json.loads(said)
    assert (code, report["slowest_rank"], len(report["ranks"])) == (0, 7, 8)
    merged = tmp_path / "all.json.gz"
    assert ask("trace", "merge", str(DLRM8), "-o", str(merged))[0] == 0
    assert len({event["pid"] for event in json.loads(gzip.decompress(merged.read_bytes()))["traceEvents"]}) == 8
