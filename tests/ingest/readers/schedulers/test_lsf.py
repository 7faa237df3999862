"""The records of `recorded/lsf` are published ones of four versions; names were changed and a long script cut.

Source: apel/apel, its LSF parser (5.1); ubccr/xdmod, tests of its LSF shredder (9.11); a script on GitHub that takes
lsb.acct apart (10.1); aws-samples/hpc-cost-simulator, tests (10.108). IBM Spectrum LSF 10.1, reference, lsb.acct.
"""

from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.schedulers.lsf import LsfReader

RECORDED = RECORDINGS / "lsf" / "lsb.acct"
SECOND = 1_000_000_000
V5_1, V9_11, V10_1, V10_108 = RECORDED.read_text().splitlines()
EXIT = '32 60.0 "" "sleep 1000"'  # of V10_1
HOSTS = '1 "pac" 1 "lsf-pac.localdomain.com"'


def read(path: Path) -> tuple[list[Job], Report]:
    report = Report(str(path), "lsf")
    return list(LsfReader().read(path, report, Context("test"))), report


def read_line(folder: Path, line: str) -> tuple[list[Job], Report]:
    path = folder / "lsb.acct"
    path.write_text(f"{line}\n")
    return read(path)


def test_jobs_of_every_version_are_read() -> None:
    jobs, report = read(RECORDED)
    assert [(job.job_id, job.fields["version"], job.state, job.exit_code) for job in jobs] == [
        ("699195", "5.1", "COMPLETED", 0),
        ("404717", "9.11", "COMPLETED", 0),
        ("7610", "10.1", "FAILED", 255),  # exitStatus 65280
        ("387", "10.108", "COMPLETED", 0),
    ]
    assert (report.read, report.skipped, report.notes) == (4, 0, [])


def test_a_job_has_everything_that_its_record_tells() -> None:
    job = read(RECORDED)[0][2]
    assert job == Job(
        system="test",
        job_id="7610",
        user="lsfadmin",
        account="default",
        partition="normal",
        state="FAILED",
        exit_code=255,
        nodes=("lsf-pac.localdomain.com",),
        node_count=1,
        cpu_count=1,
        submitted_ns=1527326745 * SECOND,
        started_ns=1527326746 * SECOND,
        ended_ns=1527327585 * SECOND,
        elapsed_seconds=839.0,
        fields={
            "userId": "1000",
            "options": "33554438",
            "numProcessors": "1",
            "askedHosts": "pac",
            "fromHost": "lsf-master.localdomain.com",
            "jobFile": "10/1527326745.7610",
            "hostFactor": "60.0",
            "command": "sleep 1000",
            "exitStatus": "65280",
            "maxNumProcessors": "1",
            "maxRMem": "2048",
            "chargedSAAP": "/lsfadmin",
            "jStatus": "EXIT",
            "version": "10.1",
        },
    )


def test_slots_are_counted_where_hosts_are_written_short_and_where_they_are_repeated() -> None:
    jobs = read(RECORDED)[0]
    assert (jobs[1].node_count, jobs[1].cpu_count, jobs[1].nodes[0]) == (8, 128, "host1201-ib")
    assert (jobs[3].node_count, jobs[3].cpu_count) == (1, 2)


def test_the_time_in_the_run_state_is_found_behind_lists_of_any_length() -> None:
    assert [job.elapsed_seconds for job in read(RECORDED)[0]] == [None, 40368.0, 839.0, 1.0]


def test_a_quote_inside_a_text_is_one() -> None:
    assert '#BSUB -R "span[ptile=16]";' in read(RECORDED)[0][1].fields["command"]


def test_what_is_not_known_is_left_out_and_a_resource_of_zero_is_known() -> None:
    first, _second, third, _fourth = read(RECORDED)[0]
    assert (first.fields["ru_nswap"], "ru_utime" in third.fields) == ("0", False)
    assert "exitInfo" not in third.fields


@pytest.mark.parametrize(
    ("number", "state", "reason"),
    [
        (1, "PREEMPTED", "TERM_PREEMPT"),
        (5, "TIMEOUT", "TERM_RUNLIMIT"),
        (6, "DEADLINE", "TERM_DEADLINE"),
        (9, "CANCELLED", "TERM_FORCE_ADMIN"),
        (10, "REQUEUED", "TERM_REQUEUE_OWNER"),
        (14, "CANCELLED", "TERM_OWNER"),
        (15, "CANCELLED", "TERM_ADMIN"),
        (16, "OUT_OF_MEMORY", "TERM_MEMLIMIT"),
        (20, "FAILED", "TERM_SWAP"),
        (25, "FAILED", "TERM_CWD_NOTEXIST"),
        (31, "FAILED", "TERM_RC_RECLAIM"),
        (99, "FAILED", "99"),
    ],
)
def test_why_a_job_was_ended_becomes_its_state(tmp_path: Path, number: int, state: str, reason: str) -> None:
    line = V10_1.replace('"" "" "" "" 0 "" 0 "" -1 "/lsfadmin"', f'"" "" "" "" 0 "" {number} "" -1 "/lsfadmin"')
    [job] = read_line(tmp_path, line)[0]
    assert (job.state, job.fields["exitInfo"]) == (state, reason)


def test_a_signal_is_no_exit_code(tmp_path: Path) -> None:
    [job] = read_line(tmp_path, V10_1.replace(" 65280 ", " 9 "))[0]
    assert (job.exit_code, job.signal) == (None, 9)
    [job] = read_line(tmp_path, V10_1.replace(" 65280 ", " 36608 "))[0]
    assert (job.exit_code, job.signal) == (143, 15)  # as its shell reported it


def test_an_element_of_an_array_is_named_as_lsf_names_it(tmp_path: Path) -> None:
    [job] = read_line(tmp_path, V10_1.replace('65280 1 "" "" 0 ', '65280 1 "" "" 12 '))[0]
    assert job.job_id == "7610[12]"


def test_a_job_that_never_started_has_no_start_and_no_exit_code(tmp_path: Path) -> None:
    line = V10_1.replace(" 0 0 1527326746 ", " 0 0 0 ").replace(HOSTS, "0 0")
    [job] = read_line(tmp_path, line)[0]
    assert (job.started_ns, job.exit_code, job.nodes, job.cpu_count) == (None, None, (), None)
    assert (job.ended_ns, job.elapsed_seconds) == (1527327585 * SECOND, None)


def test_records_of_reservations_are_no_jobs(tmp_path: Path) -> None:
    jobs, report = read_line(tmp_path, '"EVENT_ADRSV_FINISH" "10.1" 1527327585 1527326745 0 ""')
    assert (jobs, report.skipped) == ([], 0)
    assert report.notes == ["1 records of reservations and resizes, which are no jobs", "no jobs"]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (V10_1[V10_1.index(' "normal"') :], "", "12 fields; queue is missing"),
        (' "sleep 1000"', ' "sleep 1000', "a quoted text has no end"),
        (HOSTS, '1 "pac" 99 "lsf-pac.localdomain.com"', "numExHosts 99; "),
        (HOSTS, '-1 "pac" 1 "n1"', "numAskedHosts -1; "),
        (HOSTS, '0 1 "../../etc/passwd"', "host '../../etc/passwd'; expected a name such as n1, or 16*n1"),
        (EXIT, '4 60.0 "" "sleep 1000"', "jStatus '4'; expected 32 (EXIT) or 64 (DONE)"),
        (" 65280 ", " 1,5 ", "exitStatus '1,5'; expected a whole number"),
        (" 7610 1000 ", " 7610x 1000 ", "jobId '7610x'; expected a whole number"),
        (" 1527326745 0 0", " 15 0 0", "submitTime '15'; expected seconds since 1970, between 2001 and 2262"),
        ('"JOB_FINISH"', '"JOB_NEW"', 'no record; expected "JOB_FINISH" "version" and a time'),
    ],
)
def test_a_bad_record_is_skipped_with_its_line_and_reason(tmp_path: Path, before: str, after: str, reason: str) -> None:
    assert before in V10_1
    jobs, report = read_line(tmp_path, f"{V10_1.replace(before, after, 1)}\n{V9_11}")
    assert [job.job_id for job in jobs] == ["404717"]
    [skipped] = report.quoted
    assert skipped.line == 1
    assert skipped.reason.startswith(reason)
