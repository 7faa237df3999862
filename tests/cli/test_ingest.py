import gzip
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

Ask = Callable[..., tuple[int, str, str]]
LINK = MetricSet("link", "a link", (Column("ts_ns", "time", Kind.KEY),))
SACCT = "JobID|JobName|State|Start|End\n12|train|COMPLETED|2026-01-02T03:04:05|2026-01-02T03:05:05\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "here")
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: object) -> tuple[int, str, str]:
        code = main(["ingest", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def fill(spool: Path, origin: str = "n1") -> None:
    with SpoolWriter(spool, origin) as writer:
        writer.append_rows(LINK, {"ts_ns": [1, 2]})
        writer.append_record("run", {"run_id": "r1", "workload": "toy", "system": "lab", "state": "completed"})


def job_ids(home: Path) -> list[tuple[str, str]]:
    with Store.open(home) as store:
        return [(job.system, job.job_id) for job in store.jobs.find(limit=9)]


def test_without_a_path_the_installations_own_spool_is_stored(home: Path, ask: Ask) -> None:
    fill(home / "spool")
    assert ask() == (0, "1 batches stored (0 were there before): 2 rows, 1 runs, 0 jobs\n", "")
    assert ask()[1] == "0 batches stored (0 were there before): 0 rows, 0 runs, 0 jobs\n"


def test_what_was_kept_aside_is_stored_again(tmp_path: Path, home: Path, ask: Ask) -> None:
    fill(tmp_path / "spool")
    [segment] = sealed_segments(tmp_path / "spool")
    segment.rename(segment.with_suffix(".rejected"))
    assert ask(tmp_path / "spool")[1].startswith("0 batches stored")
    assert ask("--again", tmp_path / "spool")[1].startswith("1 batches stored")
    assert not list((tmp_path / "spool").glob("*.rejected"))
    code, _, complaint = ask("--again", "--dry-run")
    assert (code, "--again: expected spools, and none of --format" in complaint) == (2, True)


def test_a_file_is_no_spool_to_store_again(tmp_path: Path, home: Path, ask: Ask) -> None:
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(SACCT)
    code, said, _ = ask("--again", jobs)
    assert (code, f"{jobs}: expected a spool, a folder with segments" in said) == (2, True)
    assert job_ids(home) == []


def test_spools_and_files_are_stored_together(tmp_path: Path, home: Path, ask: Ask) -> None:
    fill(tmp_path / "one", "n1")
    fill(tmp_path / "two", "n2")
    (tmp_path / "jobs.txt").write_text(SACCT)
    code, output, _ = ask(tmp_path / "one", tmp_path / "two", tmp_path / "jobs.txt", "--system", "alps")
    assert code == 0
    assert output.splitlines()[0] == "3 batches stored (0 were there before): 4 rows, 1 runs, 1 jobs"
    assert f"{tmp_path / 'jobs.txt'} (sacct): 1 rows read, 0 skipped" in output
    assert job_ids(home) == [("alps", "12")]


def test_a_file_that_is_not_understood_is_code_2_and_the_others_are_stored(
    tmp_path: Path, home: Path, ask: Ask
) -> None:
    (tmp_path / "jobs.txt").write_text(SACCT)
    (tmp_path / "tea").write_bytes(bytes(range(256)))
    (tmp_path / "empty").touch()
    code, output, _ = ask(tmp_path / "tea", tmp_path / "empty", tmp_path / "nosuch", tmp_path / "jobs.txt")
    assert code == 2
    assert f"problem: {tmp_path / 'tea'}: format not recognised" in output
    assert f"problem: {tmp_path / 'empty'}: empty" in output
    assert f"problem: {tmp_path / 'nosuch'}" in output
    assert job_ids(home) == [("here", "12")]


def test_a_gzip_file_that_is_cut_short_is_a_problem_with_its_byte(tmp_path: Path, home: Path, ask: Ask) -> None:
    header, *lines = [f"{SACCT.splitlines()[0]}", *(SACCT.splitlines()[1].replace("12|", f"{n}|") for n in range(9999))]
    path = tmp_path / "jobs.txt.gz"
    path.write_bytes(gzip.compress("\n".join([header, *lines, ""]).encode())[:-3000])
    code, output, _ = ask(path)
    assert code == 2
    place = f"the compressed data is damaged or cut short at byte {path.stat().st_size} of the file"
    assert f"problem: {path}: after " in output
    assert f"{place}: Compressed file ended before the end-of-stream marker was reached; what came before" in output
    assert len(job_ids(home)) == 9


LOG = ':::MLLOG {"namespace": "", "time_ms": %d, "key": "%s", "metadata": {"status": "success"}}\n'


def test_a_log_is_recognised_after_a_long_preamble(tmp_path: Path, ask: Ask) -> None:
    preamble = "Collecting package metadata: done\n" * 100_000
    path = tmp_path / "slurm-4711.out"
    path.write_text(preamble + LOG % (1634750000000, "run_start") + LOG % (1634750600000, "run_stop"))
    code, output, _ = ask(path, "--workload", "bert")
    assert code == 0
    assert f"{path} (mllog): 1 rows read" in output
    packed = tmp_path / "slurm-4712.out.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert f"{packed} (mllog): 1 rows read" in ask(packed, "--dry-run")[1]


SACCT_TABLE = """JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
12                train       main       root          8  COMPLETED      0:0
"""


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (SACCT_TABLE, "sacct's own table cuts names and has no times: write it by: env SLURM_TIME_FORMAT=%s sacct"),
        ("JobName|State|NNodes\na|COMPLETED|2\n", "nearest: sacct (Slurm accounting, written by sacct --parsable2"),
        ("batch,objective,maximize: x\n1,2,3\n", "nearest: configurations ("),
        ("name,time,gpus\na,5,8\n", "a table with columns name, time, gpus: say what they are by --map FILE"),
        ("dear diary\n", "no known format is near; crosswind ingest --help lists all formats"),
    ],
)
def test_a_file_in_no_format_is_reported_with_what_it_is_near_to(
    tmp_path: Path, ask: Ask, text: str, advice: str
) -> None:
    (tmp_path / "file").write_text(text)
    code, output, _ = ask(tmp_path / "file")
    assert code == 2
    assert f"problem: {tmp_path / 'file'}: format not recognised; {advice}" in output


def test_lines_that_are_not_understood_are_quoted_and_skipped(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "jobs.txt").write_text(SACCT + "half a \x1b[2J line\n")
    code, output, _ = ask(tmp_path / "jobs.txt", "--format", "sacct")
    assert code == 0
    assert "1 rows read, 1 skipped" in output
    assert "  line 3: " in output
    assert "half a ?[2J line" in output


def test_machines_get_one_json_value(tmp_path: Path, home: Path, ask: Ask) -> None:
    fill(home / "spool")
    (home / "spool" / "stray.segment").write_text("notes")
    code, output, _ = ask(home / "spool", tmp_path / "nosuch", "--json")
    assert code == 2
    value = json.loads(output)
    assert value["loaded"]["batches"] == 1
    assert value["loaded"]["runs"] == ["r1"]
    assert "stray.segment" in value["loaded"]["problems"][0]
    assert "nosuch" in value["failures"][0]


def test_a_spool_that_was_never_written_is_said(home: Path, ask: Ask) -> None:
    code, output, _ = ask()
    assert code == 2
    assert f"problem: {home / 'spool'}" in output


def test_a_folder_is_gone_through_and_what_nobody_knows_is_reported(tmp_path: Path, home: Path, ask: Ask) -> None:
    folder = tmp_path / "exports" / "2026"
    folder.mkdir(parents=True)
    (folder / "jobs.txt").write_text(SACCT)
    (folder / "notes.txt").write_text("dear diary\n")
    (folder / ".hidden").write_text(SACCT.replace("12|", "13|"))
    (folder / "linked").symlink_to(folder / "jobs.txt")
    code, output, _ = ask(tmp_path / "exports")
    assert code == 0
    assert job_ids(home) == [("here", "12")]
    assert f"left out: {folder / 'notes.txt'}: format not recognised" in output
    code, output, _ = ask(tmp_path / "exports", "--json")
    assert len(json.loads(output)["unknown"]) == 1


def test_a_folder_of_which_nothing_is_known_is_code_2(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "diaries").mkdir()
    (tmp_path / "diaries" / "notes.txt").write_text("dear diary\n")
    code, output, _ = ask(tmp_path / "diaries")
    assert code == 2
    assert f"problem: {tmp_path / 'diaries'}: holds nothing of a known format" in output


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "jobs.txt").write_text(SACCT)

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_file_behind_a_url_is_stored_once(web: str, home: Path, ask: Ask) -> None:
    assert ask(f"{web}/jobs.txt")[0] == 0
    assert "1 were there before" in ask(f"{web}/jobs.txt")[1]
    assert job_ids(home) == [("here", "12")]
    assert list((home / "fetched").iterdir()) == []


@pytest.mark.parametrize("path", ["nosuch.txt", ""])
def test_a_url_that_gives_no_file_is_named(web: str, ask: Ask, path: str) -> None:
    code, output, _ = ask(f"{web}/{path}")
    assert code == 2
    assert f"problem: {web}/{path}: " in output


def test_a_url_of_an_unknown_format_is_named_by_itself(web: str, tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "web" / "tea.txt").write_text("dear diary\n")
    assert f"problem: {web}/tea.txt: format not recognised" in ask(f"{web}/tea.txt")[1]


def test_it_says_what_can_be_asked_now(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{n}|train|COMPLETED|2026-01-02T03:04:0{n}|2026-01-02T03:05:0{n}|2\n" for n in range(6)]
    (tmp_path / "jobs.txt").write_text("JobID|JobName|State|Start|End|NNodes\n" + "".join(lines))
    for words in (["import", str(tmp_path / "jobs.txt")], ["import"]):
        assert main(words) == 0
        output = capsys.readouterr().out
        assert "The store holds 6 jobs of 1 name." in output
        assert "  prediction: yes: " in output
        assert "  counters: no: no job or run states its nodes and times" in output
    assert main(["predict", "--workload", "train", "--ranks", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "job_seconds"
    assert main(["import", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"]["jobs"] == 6


def test_a_url_whose_file_grew_gives_what_is_new_under_its_own_name(
    web: str, tmp_path: Path, home: Path, ask: Ask
) -> None:
    path = tmp_path / "web" / "cpu.lp"
    path.write_text("cpu,host=n1 usage=1 1795000000000000000\n")
    assert f"{web}/cpu.lp (influx): 1 rows read" in ask(f"{web}/cpu.lp")[1]
    path.write_text(path.read_text() + "cpu,host=n1 usage=2 1795000000000000001\n")
    output = ask(f"{web}/cpu.lp")[1]
    assert "1 batches stored (0 were there before): 1 rows" in output
    assert "note: was ingested before up to byte 40" in output


@pytest.fixture
def odd_server() -> Iterator[Callable[[bytes], str]]:
    """Answers whatever it is given, once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(data: bytes) -> str:
            def serve() -> None:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(data)

            threading.Thread(target=serve, daemon=True).start()
            return f"http://127.0.0.1:{server.getsockname()[1]}/jobs.txt"

        yield answer


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH-2.0-OpenSSH_9.6"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", f"broke off after {len(SACCT)} of 500 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n", "IncompleteRead"),
    ],
)
def test_a_server_that_breaks_off_or_speaks_otherwise_hinders_nothing_else(
    odd_server: Callable[[bytes], str], tmp_path: Path, home: Path, ask: Ask, head: bytes, reason: str
) -> None:
    (tmp_path / "jobs.txt").write_text(SACCT.replace("12|", "13|"))
    url = odd_server(head + SACCT.encode())
    code, output, _ = ask(url, tmp_path / "jobs.txt")
    assert code == 2
    assert f"problem: {url}: " in output
    assert reason in output
    assert job_ids(home) == [("here", "13")]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a file.txt", "http://[::1/jobs.txt", "http://127.0.0.1:x/jobs"])
def test_what_is_no_url_hinders_nothing_else(tmp_path: Path, home: Path, ask: Ask, url: str) -> None:
    (tmp_path / "jobs.txt").write_text(SACCT)
    code, output, _ = ask(url, tmp_path / "jobs.txt")
    assert code == 2
    assert f"problem: {url}: " in output
    assert job_ids(home) == [("here", "12")]


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path, home: Path, ask: Ask) -> None:
    os.mkfifo(tmp_path / "pipe")
    code, output, _ = ask(tmp_path / "pipe", "/dev/zero", "--format", "sacct")
    assert code == 2
    for name in (tmp_path / "pipe", "/dev/zero"):
        assert f"problem: {name}: neither a file nor a folder: save its output in a file" in output


BROKEN = """
class Broken:
    name, description = "broken", "a reader that somebody else wrote"

    def recognises(self, path, head):
        return head.startswith(b"broken")

    def read(self, path, report, context):
        return [1 // 0]
"""


def test_a_reader_that_fails_is_named_and_the_others_are_stored(
    tmp_path: Path, home: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, folder = tmp_path / "packages", tmp_path / "exports"
    (packages / "broken_reader-1.dist-info").mkdir(parents=True)
    (packages / "broken_reader.py").write_text(BROKEN)
    (packages / "broken_reader-1.dist-info" / "METADATA").write_text("Name: broken-reader\nVersion: 1\n")
    points = "[crosswind.readers]\nbroken = broken_reader:Broken\n"
    (packages / "broken_reader-1.dist-info" / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(packages)
    folder.mkdir()
    (folder / "a.txt").write_text("broken\n")
    (folder / "b.txt").write_text(SACCT)
    for words in ([folder], [folder / "a.txt", folder / "b.txt"]):
        code, output, _ = ask(*words)
        assert code == 2
        assert f"problem: {folder / 'a.txt'}: the reader broken failed, nothing is stored: ZeroDivisionError" in output
        assert job_ids(home) == [("here", "12")]


def test_a_folder_that_cannot_be_listed_hinders_no_other(tmp_path: Path, home: Path, ask: Ask) -> None:
    deep = tmp_path / "exports" / "a"
    deep.mkdir(parents=True)
    (tmp_path / "exports" / "jobs.txt").write_text(SACCT)
    fd = os.open(deep, os.O_RDONLY)
    for name in ["x" * 200] * 25:  # more than a path may have
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    code, output, _ = ask(tmp_path / "exports")
    assert code == 2
    assert "File name too long" in output
    assert job_ids(home) == [("here", "12")]


def test_a_file_of_which_nothing_came_is_left_out(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "jobs.txt").write_text("JobID|JobName|State|Start|End\nx|\n")
    code, output, _ = ask(tmp_path / "jobs.txt")
    assert code == 0
    assert output.startswith("0 batches stored")
    assert f"left out: {tmp_path / 'jobs.txt'}: sacct found nothing to store: " in output


def test_a_format_that_nobody_knows_is_said_once(tmp_path: Path, ask: Ask) -> None:
    code, output, said = ask(tmp_path, tmp_path, "--format", "tea-leaves")
    assert code == 2
    assert output == ""
    assert said.count("tea-leaves") == 1
