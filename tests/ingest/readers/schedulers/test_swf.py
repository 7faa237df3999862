"""`recorded/swf` was written by the rules of the standard, with the header of a log of the archive.

Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.schedulers.swf import SwfReader

RECORDED = RECORDINGS / "swf"
START = 749433603  # 1993: older than any job of Slurm
SECOND = 1_000_000_000
JOB = "1 0 4 100 8 -1 -1 8 120 -1 1 1 -1 -1 -1 -1 -1 -1"


def read(path: Path) -> tuple[list[Job], Report]:
    report = Report(str(path), "swf")
    return list(SwfReader().read(path, report, Context("test"))), report


def read_text(folder: Path, *lines: str) -> tuple[list[Job], Report]:
    path = folder / "log.swf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read(path)


def test_each_line_is_a_job_and_parts_of_a_job_are_none() -> None:
    jobs, report = read(RECORDED / "ipsc.swf")
    assert [(job.job_id, job.state, job.cpu_count) for job in jobs] == [
        ("1", "", 128),
        ("2", "COMPLETED", 128),
        ("3", "FAILED", 128),
        ("4", "CANCELLED", 1),
        ("5", "COMPLETED", 64),
        ("6", "CANCELLED", None),
    ]
    assert (report.read, report.skipped) == (6, 0)
    assert report.notes == ["2 lines of parts of jobs: another line has the whole"]


def test_a_job_has_everything_of_its_line() -> None:
    assert read(RECORDED / "ipsc.swf")[0][2] == Job(
        system="test",
        job_id="3",
        user="1",
        partition="1",
        state="FAILED",
        cpu_count=128,
        submitted_ns=(START + 5198) * SECOND,
        started_ns=(START + 5208) * SECOND,
        ended_ns=(START + 5225) * SECOND,
        elapsed_seconds=17.0,
        fields={
            "cpu_seconds_per_processor": "12.5",
            "memory_kilobytes_per_processor": "2048",
            "requested_processors": "128",
            "requested_seconds": "3600",
            "requested_memory_kilobytes_per_processor": "4096",
            "status": "0",
            "group": "1",
            "executable": "1",
            "partition": "1",
        },
    )


def test_parts_of_seconds_are_exact() -> None:
    job = read(RECORDED / "ipsc.swf")[0][3]
    assert job.submitted_ns == START * SECOND + 5_269_250_000_000
    assert (job.started_ns, job.elapsed_seconds) == (START * SECOND + 5_271_750_000_000, 0.75)


def test_an_unknown_wait_leaves_start_and_end_unknown() -> None:
    job = read(RECORDED / "ipsc.swf")[0][0]
    assert (job.submitted_ns, job.started_ns, job.ended_ns) == (START * SECOND, None, None)
    assert job.elapsed_seconds == 1451.0


def test_a_job_cancelled_in_the_queue_never_started() -> None:
    job = read(RECORDED / "ipsc.swf")[0][5]
    assert (job.started_ns, job.ended_ns, job.fields["wait_seconds"]) == (None, None, "50")


def test_without_the_time_when_the_log_began_jobs_have_no_times() -> None:
    jobs, report = read(RECORDED / "model.swf")
    assert [(job.submitted_ns, job.started_ns, job.ended_ns) for job in jobs] == [(None, None, None)] * 2
    assert [job.elapsed_seconds for job in jobs] == [100.0, 200.0]
    assert [job.fields.get("wait_seconds") for job in jobs] == ["4", None]
    assert report.notes == [
        "no UnixStartTime in the header: jobs have no times, but fields submit_seconds and wait_seconds"
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 0 4 100 8", "5 fields; expected 18"),
        (f"{JOB} 7", "19 fields; expected 18"),
        (JOB.replace("100", "1,5"), "not 18 numbers: '1 0 4 1,5 8"),
        (JOB.replace("100", "1e3"), "not 18 numbers: '1 0 4 1e3 8"),
        (JOB.replace("1 0 4 100", "1 0 4 -100"), "-100 seconds; expected 0 or more, or -1 when unknown"),
        (JOB.replace("-1 1 1", "-1 7 1"), "status '7'; expected -1 to 5"),
        (JOB.replace("1 0 4", "1.5 0 4"), "job 1.5; expected a whole number, or -1 when unknown"),
        (JOB.replace("1 0 4", "-1 0 4"), "job -1; expected a number"),
        (JOB.replace("100 8", "100 -8"), "processors -8; expected a whole number, or -1 when unknown"),
        (JOB.replace("1 0 4", "1 99999999999 4"), "99999999999 seconds after the log began is after 2262"),
        ("; UnixStartTime: 5", "another UnixStartTime after jobs; expected one log in a file"),
    ],
)
def test_a_bad_line_is_skipped_with_its_number_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    jobs, report = read_text(tmp_path, f"; UnixStartTime: {START}", JOB, line, JOB.replace("1 0", "2 0", 1))
    assert [job.job_id for job in jobs] == ["1", "2"]
    [skipped] = report.quoted
    assert skipped.line == 3
    assert skipped.reason.startswith(reason)


def test_whole_numbers_may_be_written_as_simulators_write_them(tmp_path: Path) -> None:
    """Source: evalys, tests/easy_mediumWL_smallPF.swf, which Batsim wrote."""
    line = "2060.0 2754.556511 -0.0 140.95 2.0 -1.0 -1 2 212.0 -1 1.0 -1 -1 -1 -1 -1 -1 -1"
    [job] = read_text(tmp_path, f"; UnixStartTime: {START}", line)[0]
    assert (job.job_id, job.state, job.cpu_count, job.elapsed_seconds) == ("2060", "COMPLETED", 2, 140.95)
    assert job.started_ns == START * SECOND + 2_754_556_511_000
    assert job.fields == {"requested_processors": "2", "requested_seconds": "212", "status": "1"}


def test_a_table_of_numbers_is_recognised_by_comments_before_it_or_by_its_name() -> None:
    reader, head = SwfReader(), f"{JOB}\n".encode()
    assert reader.recognises(Path("x.swf"), head)
    assert reader.recognises(Path("x.swf.gz"), head)
    assert reader.recognises(Path("x"), b"; Version: 2\n\n" + head)
    assert not reader.recognises(Path("x.txt"), head)
    assert not reader.recognises(Path("x.swf"), b"; a comment\n[section]\n")
