"""The same 14 jobs as Slurm's live programs list them. Recorded with Slurm 22.05.8; data_parser-0.0.41.json has some of
them in the names and shapes of src/plugins/data_parser/v0.0.41/parsers.c (JOB_INFO)."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Reader, Report
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.slurm.scontrol import ScontrolReader
from crosswind.ingest.readers.slurm.squeue import FORMAT, POOR, SqueueReader
from crosswind.ingest.readers.slurm.squeue_json import SqueueJsonReader

READERS: Mapping[str, Reader] = {
    "scontrol/slurm-22.05.txt": ScontrolReader(),
    "scontrol/one-line-22.05.txt": ScontrolReader(),
    "squeue_json/slurm-22.05.json": SqueueJsonReader(),
    "squeue_json/data_parser-0.0.41.json": SqueueJsonReader(),
    "squeue/columns-22.05.txt": SqueueReader(),
    "squeue/table-22.05.txt": SqueueReader(),
    "squeue/long-22.05.txt": SqueueReader(),
}
SECOND = 1_000_000_000
EPOCH = 1795299600  # 22:20 of that day


def read(name: str) -> tuple[dict[str, Job], Report]:
    """Jobs by the id that Slurm shows, and the report."""
    return read_file(RECORDINGS / name, READERS[name])


def read_file(path: Path, reader: Reader, zone: str = "UTC") -> tuple[dict[str, Job], Report]:
    report = Report(str(path), reader.name)
    jobs = [job for job in reader.read(path, report, Context("test", zone_named(zone))) if isinstance(job, Job)]
    return {job.fields.get("JobID", job.job_id): job for job in jobs}, report


def seconds(job: Job) -> list[int | None]:
    """Submission, start and end."""
    times = (job.submitted_ns, job.started_ns, job.ended_ns)
    return [None if time is None else time // SECOND - EPOCH for time in times]


CODES = {"1": (0, 15), "3": (3, None), "4": (0, 9), "5": (0, None), "6_2": (2, None), "7+1": (0, None)}
CODES |= {"10": (None, None), "11_[5-9%2]": (None, None), "12": (0, None)}
STATES = {"1": "TIMEOUT", "3": "FAILED", "4": "FAILED", "5": "COMPLETED", "6_2": "FAILED", "7+1": "COMPLETED"}
STATES |= {"10": "RUNNING", "11_[5-9%2]": "PENDING", "12": "CANCELLED"}
TIMES = {
    "1": [89, 89, 103],
    "5": [89, 90, 91],
    "7+1": [89, 92, 93],
    "10": [96, 98, None],  # the end that Slurm shows is when its limit is reached
    "11_[5-9%2]": [89, None, None],
    "12": [90, None, 96],  # cancelled while it waited: the start that Slurm shows is that moment
}


@pytest.mark.parametrize("name", [name for name in READERS if "0.0.41" not in name])
def test_every_program_reports_the_same_states(name: str) -> None:
    jobs, report = read(name)
    assert {shown: job.state for shown, job in jobs.items() if shown in STATES} == STATES
    assert (report.read, report.skipped) == (len(jobs), 0)


@pytest.mark.parametrize("name", [name for name in READERS if "squeue/" not in name and "0.0.41" not in name])
def test_exit_codes_and_signals_are_those_of_the_jobs(name: str) -> None:
    jobs, _ = read(name)
    assert {shown: (job.exit_code, job.signal) for shown, job in jobs.items() if shown in CODES} == CODES


@pytest.mark.parametrize("name", [name for name in READERS if "22.05" in name][:4])
def test_what_is_only_expected_is_no_time(name: str) -> None:
    jobs, _ = read(name)
    assert {shown: seconds(job) for shown, job in jobs.items() if shown in TIMES} == TIMES


def test_scontrol_has_everything_of_a_job() -> None:
    jobs, report = read("scontrol/slurm-22.05.txt")
    assert jobs["6_2"] == Job(
        system="test",
        job_id="6",
        name="tasks",
        user="root",
        account="weather",
        partition="test",
        state="FAILED",
        exit_code=2,
        nodes=("node2",),
        node_count=1,
        cpu_count=1,
        submitted_ns=(EPOCH + 89) * SECOND,
        started_ns=(EPOCH + 90) * SECOND,
        ended_ns=(EPOCH + 91) * SECOND,
        elapsed_seconds=1.0,
        fields={
            "JobID": "6_2",
            "QOS": "normal",
            "TimeLimit": "00:10:00",
            "TRES": "cpu=1,node=1,billing=1",
            "Reason": "NonZeroExitCode",
        },
    )
    assert report.notes == ["time_zone: 40 times have no zone and were read as UTC"]


def test_one_line_and_several_tell_the_same() -> None:
    assert read("scontrol/slurm-22.05.txt")[0] == read("scontrol/one-line-22.05.txt")[0]


def test_how_often_a_job_was_requeued_is_kept() -> None:
    for name in ("scontrol/slurm-22.05.txt", "squeue_json/slurm-22.05.json", "squeue_json/data_parser-0.0.41.json"):
        assert {shown: job.fields.get("Restarts") for shown, job in read(name)[0].items()}["10"] == "1"


def test_later_json_reports_the_same() -> None:
    old, new = read("squeue_json/slurm-22.05.json")[0], read("squeue_json/data_parser-0.0.41.json")[0]
    completing = new.pop("3")
    assert (completing.state, completing.fields["State"]) == ("COMPLETING", "FAILED COMPLETING")
    assert (completing.ended_ns, completing.exit_code) == (old["3"].ended_ns, 3)  # it ended; its nodes are cleared up
    assert new == {shown: old[shown] for shown in new}
    assert set(new) == {"1", "6_2", "7+1", "10", "11_[5-9%2]"}


def test_squeues_columns_tell_ids_as_jobs_see_them() -> None:
    jobs, report = read("squeue/columns-22.05.txt")
    assert {shown: job.job_id for shown, job in jobs.items() if "_" in shown or "+" in shown} == {
        "6_0": "13",
        "6_1": "14",
        "6_2": "6",
        "7+0": "7",
        "7+1": "8",
        "11_[5-9%2]": "11",
    }
    job = jobs["3"]
    assert (job.name, job.user, job.account, job.nodes) == ("three|bars", "root", "weather", ("node2",))
    assert jobs["1"].elapsed_seconds == 14.0
    assert report.notes == [POOR]


def test_squeues_table_gives_no_name_that_may_be_cut_short() -> None:
    jobs, report = read("squeue/table-22.05.txt")
    assert {shown: job.name for shown, job in jobs.items() if job.name != "tasks"} == {
        "1": "",  # `too slow` has just 8 letters, and so has what is left of `three|bars`
        "2": "ok",
        "3": "",
        "4": "killed",
        "5": "",
        "7+0": "hetero",
        "7+1": "hetero",
        "9": "stopped",
        "10": "again",
        "11_[5-9%2]": "held",
        "12": "never",
    }
    fault = "names, users or partitions fill their column and may be cut short: left out"
    assert report.notes == [POOR, f"3 {fault}; use squeue --format='{FORMAT}'"]
    assert (jobs["5"].nodes, jobs["5"].node_count, jobs["4"].nodes) == (("node2", "node3"), 2, ())
    assert [seconds(job) for job in jobs.values()] == [[None] * 3] * 14


def test_the_long_table_cuts_states_and_most_of_them_are_certain(tmp_path: Path) -> None:
    text = (RECORDINGS / "squeue/long-22.05.txt").read_text()
    path = tmp_path / "long.txt"
    path.write_text(text.replace(" CANCELLE ", " REQUEUE_ ", 1).replace(" COMPLETE ", " OUT_OF_M ", 1))
    jobs, report = read_file(path, SqueueReader())
    assert jobs["2"].state == "OUT_OF_MEMORY"
    reason = f"STATE 'REQUEUE_' may be REQUEUE_FED or REQUEUE_HOLD; use squeue --format='{FORMAT}'"
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [(3, reason)]


def test_names_wider_than_ascii_do_not_shift_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    text = (RECORDINGS / "squeue/table-22.05.txt").read_text()
    path.write_text(text.replace("   killed ", "  gr\u00f6ste "))  # squeue counts octets
    jobs, report = read_file(path, SqueueReader())
    assert (jobs["4"].name, report.skipped) == ("gr\u00f6ste", 0)


ROW = {"id": "17", "state": "R", "time": "0:05", "nodes": "1", "where": "node3"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "17.0"}, "'17.0' is a job step"),
        ({"id": "1e"}, "job id '1e'; expected 123"),
        ({"state": "r"}, "State 'r'; expected a word"),
        ({"time": "5min"}, "TIME '5min'; expected [days-][hours:]minutes:seconds"),
        ({"nodes": "1K"}, "NODES '1K'; expected a whole number"),
        ({"where": "../etc"}, "node list '../etc'"),
        ({"id": "17 " * 6 + "17"}, "column JOBID does not end below its heading"),
        ({"time": "100000-00:00:00"}, "column TIME does not end below its heading"),
    ],
)
def test_each_bad_line_of_the_table_is_skipped(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    path = tmp_path / "table.txt"
    row = "{id:>18}      test  stopped     root {state:>2} {time:>10} {nodes:>6} {where}\n".format(**{**ROW, **change})
    path.write_text((RECORDINGS / "squeue/table-22.05.txt").read_text() + row)
    jobs, report = read_file(path, SqueueReader())
    assert len(jobs) == 14
    [skipped] = report.quoted
    assert skipped.line == 16
    assert skipped.reason.startswith(reason)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0:05", 5.0), ("59:59", 3599.0), ("1:00:00", 3600.0), ("2-03:04:05", 183845.0), ("INVALID", None)],
)
def test_days_and_hours_are_written_only_where_needed(tmp_path: Path, text: str, expected: float | None) -> None:
    path = tmp_path / "columns.txt"
    path.write_text(f"JOBID|ST|TIME\n5|R|{text}\n")
    assert read_file(path, SqueueReader())[0]["5"].elapsed_seconds == expected


def test_headings_may_come_again(tmp_path: Path) -> None:
    path = tmp_path / "watched.txt"
    path.write_text((RECORDINGS / "squeue/long-22.05.txt").read_text() * 2)  # squeue --iterate
    jobs, report = read_file(path, SqueueReader())
    assert (len(jobs), report.read, report.skipped) == (14, 28, 0)


def test_a_queue_without_its_heading_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_text("  9      test  stopped     root CA       0:05      1 node3\n")
    with pytest.raises(MalformedError, match="line 1: expected squeue's heading, found"):
        read_file(path, SqueueReader())


def test_times_without_zone_are_of_the_zone_that_is_named() -> None:
    path = RECORDINGS / "scontrol/slurm-22.05.txt"
    there = read_file(path, ScontrolReader(), "Asia/Kathmandu")[0]["5"]
    assert seconds(there) == [89 - 20_700, 90 - 20_700, 91 - 20_700]


RECORD = (RECORDINGS / "scontrol/one-line-22.05.txt").read_text().split("\n")[1]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("JobName=ok", "JobName=ok UserId=ada(5) GroupId=ada(5)", "UserId is repeated: a name or comment of"),
        ("WorkDir=/", "Comment=x EndTime=2020-01-01T00:00:00 WorkDir=/", "EndTime is repeated"),
        ("JobState=COMPLETED", "JobState=done", "State 'done'; expected a word"),
        ("JobState=COMPLETED", "", "State ''; expected a word"),
        ("ExitCode=0:0", "ExitCode=zero", "ExitCode 'zero'; expected code:signal"),
        ("StartTime=2026", "StartTime=26", "StartTime '26-11-21T22:21:29' is no time"),
        (" NodeList=node1", " NodeList=../../etc", "node list '../../etc'"),
        ("RunTime=00:00:03", "RunTime=3s", "Elapsed '3s'; expected [days-]hours"),
        ("NumNodes=1", "NumNodes=one", "NumNodes 'one'; expected a whole number"),
    ],
)
def test_each_bad_record_of_scontrol_is_skipped(tmp_path: Path, before: str, after: str, reason: str) -> None:
    path = tmp_path / "jobs.txt"
    assert before in RECORD
    path.write_text("\n".join([RECORD, RECORD.replace(before, after).replace("JobId=2", "JobId=99"), RECORD, ""]))
    jobs, report = read_file(path, ScontrolReader())
    assert set(jobs) == {"2"}
    assert [(skipped.line, skipped.reason[: len(reason)]) for skipped in report.quoted] == [(2, reason)]


def test_a_waiting_job_may_get_a_range_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(RECORD.replace("NumNodes=1", "NumNodes=2-4") + "\n")
    assert read_file(path, ScontrolReader())[0]["2"].node_count == 2


def test_lines_of_no_job_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(f"slurm_load_jobs error: Invalid job id specified\n{RECORD}\n")
    jobs, report = read_file(path, ScontrolReader())
    assert (set(jobs), report.quoted[0].reason) == ({"2"}, "belongs to no job; expected JobId=...")


@pytest.mark.parametrize(
    ("heading", "line", "started"),
    [
        ("JOBID|STATE|START_TIME", "5|COMPLETED|1795299690", 90),
        ("JOBID|STATE|START_TIME", "5|CANCELLED|1795299690", 90),  # nobody says that it had no nodes
        ("JOBID|STATE|START_TIME|TIME", "5|CANCELLED|1795299690|0:00", 90),
        ("JOBID|STATE|START_TIME|NODELIST", "5|CANCELLED|1795299690|", 90),
        ("JOBID|STATE|START_TIME|NODELIST|TIME", "5|CANCELLED|1795299690||0:07", 90),
        ("JOBID|STATE|START_TIME|NODELIST|TIME", "5|NODE_FAIL|1795299690||0:00", 90),
        ("JOBID|STATE|START_TIME|NODELIST|TIME", "5|CANCELLED|1795299690||0:00", None),
        ("JOBID|STATE|START_TIME|NODELIST|END_TIME", "5|CANCELLED|1795299690||1795299690", None),
    ],
)
def test_only_a_job_that_is_known_never_to_have_run_has_no_start(
    tmp_path: Path, heading: str, line: str, started: int | None
) -> None:
    path = tmp_path / "queue.txt"
    path.write_text(f"{heading}\n{line}\n")
    [job] = read_file(path, SqueueReader())[0].values()
    assert seconds(job)[1] == started
