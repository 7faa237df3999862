"""`recorded/flux`: the first line of the list is published, the rest has the names and forms that Flux's source gives.

Source: Flux RESTful API, its guide, `flux-restful-cli info`; flux-core, JobInfo.to_dict and flux-jobs(1).
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.schedulers.flux import FluxReader, f58

RECORDED = RECORDINGS / "flux"
ENDED = json.loads((RECORDED / "job-list.jsonl").read_text().split("\n")[0])


def read(path: Path) -> tuple[list[Job], Report]:
    report = Report(str(path), "flux")
    return list(FluxReader().read(path, report, Context("test"))), report


def changed(folder: Path, **values: Any) -> tuple[list[Job], Report]:
    path = folder / "jobs.jsonl"
    path.write_text("".join(f"{json.dumps(job)}\n" for job in (ENDED | values, ENDED)))
    return read(path)


def test_a_document_gives_its_jobs_in_slurms_words() -> None:
    jobs, report = read(RECORDED / "jobs.json")
    assert [(job.job_id, job.state, job.fields["status"], job.exit_code, job.signal) for job in jobs] == [
        ("ƒ6cnJ1Wni", "RUNNING", "RUN", None, None),
        ("ƒ6cnJ1WeT", "TIMEOUT", "TIMEOUT", 142, 14),
        ("ƒuZZybuNNy", "CANCELLED", "CANCELED", None, None),
    ]
    assert (report.read, report.skipped, report.notes) == (3, 0, [])


def test_a_list_of_lines_gives_its_jobs() -> None:
    jobs, report = read(RECORDED / "job-list.jsonl")
    assert [(job.job_id, job.state, job.fields["status"], job.exit_code) for job in jobs] == [
        ("ƒ6cnJ1WeT", "COMPLETED", "COMPLETED", 0),
        ("ƒ6cnJ1Wit", "PENDING", "SCHED", None),
    ]
    assert (report.read, report.skipped, report.notes) == (2, 0, [])


def test_a_job_has_everything_in_its_record() -> None:
    assert read(RECORDED / "jobs.json")[0][1] == Job(
        system="test",
        job_id="ƒ6cnJ1WeT",
        name="slow",
        user="ada",
        state="TIMEOUT",
        exit_code=142,
        signal=14,
        nodes=("flux-sample-3",),
        node_count=1,
        cpu_count=1,
        submitted_ns=1667941663_332426800,
        started_ns=1667941663_354966900,
        ended_ns=1667941723_412976300,
        elapsed_seconds=60.0580094,
        fields={
            "id": "12402053611520",
            "t_depend": "1667941663.3324268",
            "t_inactive": "1667941723.4203393",
            "duration": "60.0",
            "expiration": "1667941723.0",
            "cwd": "/home/ada",
            "ntasks": "1",
            "priority": "16",
            "ranks": "3",
            "success": "false",
            "waitstatus": "36352",
            "urgency": "16",
            "returncode": "142",
            "exception.occurred": "true",
            "exception.severity": "0",
            "exception.type": "timeout",
            "exception.note": "resource allocation expired",
            "status": "TIMEOUT",
        },
    )


def test_a_running_job_has_its_nodes_queue_and_bank_and_no_end() -> None:
    job = read(RECORDED / "jobs.json")[0][0]
    assert (job.nodes, job.node_count, job.cpu_count) == (("tern7", "tern8"), 2, 128)
    assert (job.partition, job.account, job.ended_ns, job.elapsed_seconds) == ("pbatch", "guests", None, None)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "ƒ1"),
        (57, "ƒz"),
        (1234, "ƒNH"),
        (3364, "ƒ211"),
        (4294967295, "ƒ7YXq9G"),
        (6731191091817518, "ƒuZZybuNNy"),
        (18446744073709551615, "ƒjpXCZedGfVQ"),
    ],
)
def test_an_id_is_the_one_that_the_job_sees(number: int, text: str) -> None:
    """Source: flux-core, src/common/libutil/test/fluid.c."""
    assert f58(number) == text


def test_a_task_that_a_signal_ended_has_no_exit_code(tmp_path: Path) -> None:
    assert [(job.exit_code, job.signal) for job in changed(tmp_path, waitstatus=9)[0]] == [(None, 9), (0, None)]


def test_jobs_inside_jobs_are_left_out_and_counted(tmp_path: Path) -> None:
    jobs, report = changed(tmp_path, jobs=[ENDED])
    assert len(jobs) == 2
    assert "1 jobs hold further jobs: those are left out" in report.notes


def test_a_document_that_is_cut_short_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text((RECORDED / "jobs.json").read_text()[:1000])
    jobs, report = read(path)
    assert [job.name for job in jobs] == ["train"]
    [skipped] = report.quoted
    assert "no JSON" in skipped.reason


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"id": None}, "id is missing"),
        ({"id": -1}, "id '-1'; expected a whole number"),
        ({"id": 1 << 64}, "id '18446744073709551616'; expected a whole number"),
        ({"state": 3}, "state '3'; expected one of NEW, DEPEND, PRIORITY, SCHED, RUN, CLEANUP, INACTIVE"),
        ({"result": "LOST"}, "result 'LOST'; expected one of COMPLETED, FAILED, CANCELED, TIMEOUT"),
        ({"t_run": "noon"}, "t_run 'noon'; expected seconds since 1970"),
        ({"t_run": 1e300}, "t_run '1e+300'; expected seconds since 1970"),
        ({"t_run": float("nan")}, "t_run 'nan'; expected seconds since 1970"),
        ({"nnodes": True}, "nnodes 'True'; expected a whole number"),
        ({"nodelist": "n[1-999999999]"}, "node list 'n[1-999999999]' stands for more than 100000 nodes"),
        ({"name": "\ud800"}, "'\\ud800' is no text"),
        ({"cwd": "a\0b"}, "'a\\x00b' is no text"),
    ],
)
def test_a_bad_job_is_skipped_with_its_line_and_reason(tmp_path: Path, values: dict[str, Any], reason: str) -> None:
    jobs, report = changed(tmp_path, **values)
    assert len(jobs) == 1
    [skipped] = report.quoted
    assert (skipped.line, skipped.reason) == (1, reason)


@pytest.mark.parametrize("line", ["[" * 100_000, "{", "12", '"text"', "[]", "null"])
def test_a_line_that_is_no_job_is_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(f"{json.dumps(ENDED)}\n{line}\n")
    jobs, report = read(path)
    assert (len(jobs), report.skipped) == (1, 1)


def test_other_documents_of_jobs_are_not_taken() -> None:
    slurm = b'{"jobs": [{"job_id": 7, "state": {"current": ["COMPLETED"]}, "time": {"submission": 1700000000}}]}'
    assert not FluxReader().recognises(Path("jobs.json"), slurm)
