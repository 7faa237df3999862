"""The records of `recorded/pbs` have the form and the values of published ones, under other names of users and hosts.

Source: Torque administrator guide, accounting records (2005 and 2014); NCAR/pbsparse, its tests (the records E, R, D,
A, Y, a of PBS); apel/apel, test/test_pbs.py (Torque 5.1, with durations in seconds).
"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.schedulers import pbs_values
from crosswind.ingest.readers.schedulers.pbs import PbsReader

RECORDED = RECORDINGS / "pbs"
SECOND = 1_000_000_000
END = "user=a group=g jobname=j queue=q ctime=1700000000 start=1700000010 end=1700000020 Exit_status=0"


def read(path: Path, time_zone: str = "UTC") -> tuple[dict[str, Job], Report]:
    report = Report(str(path), "pbs")
    return {job.job_id: job for job in PbsReader().read(path, report, Context("test", zone_named(time_zone)))}, report


def log(folder: Path, *records: str) -> Path:
    path = folder / "20231114"
    path.write_text("".join(f"11/14/2023 22:13:{20 + place:02};{text}\n" for place, text in enumerate(records)))
    return path


def outcomes(jobs: dict[str, Job]) -> dict[str, tuple[str, int | None, int | None]]:
    return {job_id: (job.state, job.exit_code, job.signal) for job_id, job in jobs.items()}


def test_all_records_of_a_job_become_one_in_its_newest_state() -> None:
    jobs, report = read(RECORDED / "openpbs-23.txt", "America/Denver")
    assert outcomes(jobs) == {
        "4386764.tern-pbs": ("CANCELLED", None, None),  # aborted by the server
        "4413086.tern-pbs": ("CANCELLED", None, 15),  # deleted while it ran: Exit_status=271
        "4420000[1].tern-pbs": ("TIMEOUT", None, None),  # Exit_status=-29
        "4400521.tern-pbs": ("REQUEUED", None, None),  # Exit_status=-3, and not started again
        "4421332.tern-pbs": ("CANCELLED", None, None),  # only its deletion is recorded
        "4421334.tern-pbs": ("SUSPENDED", None, None),
    }
    assert (report.read, report.skipped) == (6, 0)
    assert report.notes == [
        "2 records of licenses and reservations, which are no jobs",
        "7 records folded into their jobs",
        "1 records of whole job arrays: their elements have records of their own",
        "1 records of phases, provisioning and alterations",
        "time_zone: 2 times have no zone and were read as America/Denver",
    ]


def test_a_job_has_everything_that_its_end_tells() -> None:
    assert read(RECORDED / "torque.txt")[0]["11923.reed"] == Job(
        system="test",
        job_id="11923.reed",
        name="STDIN",
        user="dan",
        partition="batch",
        state="FAILED",
        exit_code=137,
        signal=9,
        nodes=("reed", "reed-devtest-03"),
        node_count=2,
        cpu_count=12,
        submitted_ns=1409094464 * SECOND,
        started_ns=1409094470 * SECOND,
        ended_ns=1409094479 * SECOND,
        elapsed_seconds=9.0,
        fields={
            "record": "E",
            "group": "company",
            "qtime": "1409094464",
            "etime": "1409094464",
            "owner": "dan@reed",
            "Resource_List.nodes": "2:ppn=6",
            "session": "11352",
            "total_execution_slots": "12",
            "unique_node_count": "2",
            "Exit_status": "137",
            "resources_used.cput": "00:00:00",
            "resources_used.energy_used": "0",  # of which nobody says the unit
            "resources_used.mem": "3668kb",
            "resources_used.vmem": "321872kb",
        },
    )


def test_nodes_and_cpus_of_a_chunk_are_counted_together() -> None:
    job = read(RECORDED / "openpbs-23.txt")[0]["4420000[1].tern-pbs"]
    assert (job.nodes, job.node_count, job.cpu_count) == (("deg0001", "deg0002"), 2, 128)
    assert (job.account, job.elapsed_seconds) == ("SCSG0001", 3624.0)


def test_a_deletion_tells_who_asked_for_it() -> None:
    jobs = read(RECORDED / "openpbs-23.txt")[0]
    assert jobs["4413086.tern-pbs"].fields["requestor"] == "vera@tern-login1.example.org"
    assert jobs["4413086.tern-pbs"].ended_ns == 1744820388 * SECOND


def test_a_job_that_never_ran_ended_when_its_last_record_was_written_in_the_servers_zone() -> None:
    aborted = read(RECORDED / "openpbs-23.txt", "America/Denver")[0]["4386764.tern-pbs"]
    assert (aborted.submitted_ns, aborted.started_ns) == (1744649730 * SECOND, None)
    assert aborted.ended_ns == 1744649760 * SECOND
    assert aborted.fields["reason"] == "Job deleted as result of dependency on job 4386762.tern-pbs"


def test_torque_tells_of_a_queued_job_only_its_queue_and_when() -> None:
    queued = read(RECORDED / "torque.txt")[0]["409.ign1.example.org"]
    assert queued == Job(
        system="test",
        job_id="409.ign1.example.org",
        partition="batch",
        state="PENDING",
        submitted_ns=1118066675 * SECOND,
        fields={"record": "Q"},
    )


def test_times_in_seconds_and_arrays_of_torque_are_read() -> None:
    job = read(RECORDED / "torque.txt")[0]["24940336-7.b0"]
    assert (job.state, job.exit_code, job.elapsed_seconds) == ("COMPLETED", 0, 12767.0)


def test_values_with_blanks_are_quoted_or_follow_their_name(tmp_path: Path) -> None:
    values = """group=domain users account="my account" project='say "hi" there' Resource_List.place="scatter excl" """
    job = read(log(tmp_path, f"E;1.s;{values}{END.replace('group=g ', '')}"))[0]["1.s"]
    assert (job.fields["group"], job.account) == ("domain users", "my account")
    assert (job.fields["project"], job.fields["Resource_List.place"]) == ('say "hi" there', "scatter excl")


def test_of_a_value_told_twice_the_first_holds() -> None:
    assert pbs_values.pairs("user=ada Resource_Request=-L tasks=1 user=root") == {
        "user": "ada",
        "Resource_Request": "-L",
        "tasks": "1",
    }


def test_a_job_that_runs_again_has_no_end(tmp_path: Path) -> None:
    start = "user=a jobname=j queue=q ctime=1700000000 start=17000000{}0 exec_host=n{}/0"
    rerun = start.format(1, 1) + " end=1700000015 Exit_status=-11 resources_used.walltime=00:00:05"
    records = (f"S;1.s;{start.format(1, 1)}", f"R;1.s;{rerun}", f"S;1.s;{start.format(2, 2)}")
    job = read(log(tmp_path, *records))[0]["1.s"]
    assert (job.state, job.nodes, job.ended_ns, job.elapsed_seconds) == ("RUNNING", ("n2",), None, None)
    assert job.started_ns == 1700000020 * SECOND


def test_deleting_a_jobs_history_does_not_end_it_again(tmp_path: Path) -> None:
    jobs, report = read(log(tmp_path, f"E;1.s;{END}", "D;1.s;requestor=root@s"))
    assert outcomes(jobs) == {"1.s": ("COMPLETED", 0, None)}
    assert "1 records of deletions come after their job's end" in report.notes


def test_a_job_told_twice_and_one_that_ends_before_it_starts_are_remarked(tmp_path: Path) -> None:
    backwards = END.replace("end=1700000020", "end=1700000005")
    jobs, report = read(log(tmp_path, f"E;1.s;{END}", f"E;1.s;{backwards}"))
    assert jobs["1.s"].ended_ns == 1700000005 * SECOND
    assert report.notes == ["1 jobs are repeated: the later account counts", "1 jobs end before they start"]


def test_a_job_in_the_future_is_remarked(tmp_path: Path) -> None:
    _jobs, report = read(log(tmp_path, f"E;1.s;{END.replace('end=1700000020', 'end=4102444800')}"))
    assert report.notes == ["1 jobs have times in the future"]


def test_the_hour_that_comes_twice_is_remarked(tmp_path: Path) -> None:
    path = tmp_path / "20231105"
    path.write_text("11/05/2023 01:30:00;D;1.s;requestor=a@s\n")
    jobs, report = read(path, "America/Denver")
    assert jobs["1.s"].ended_ns == 1699169400 * SECOND  # the first of the two, in summer time
    assert report.notes[1].startswith("1 times, 2023-11-05T01:30:00 first, come twice or never")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("E;1e3;", "job id '1e3'; expected 123.server, 123[4].server or 123-4.server"),
        ("X;1.s;", "record 'X'; expected one of Q, S, s, T, R, z, r, C, D, E, A, M"),
        ("E;1.s;start=12", "start '12'; expected seconds since 1970, between 2001 and 2262"),
        ("E;1.s;end=now", "end 'now'; expected seconds since 1970"),
        ("E;1.s;Exit_status=nine", "Exit_status 'nine'; expected a whole number"),
        ("E;1.s;exec_host=../../etc/0", "exec_host '../../etc/0'; expected a host such as n1/0, n1/0*8 or n1/0-7"),
        ("E;1.s;exec_host=n1/7-0", "exec_host slots '7-0'; expected numbers such as 0-7,9"),
        ("E;1.s;resources_used.walltime=1,5", "walltime '1,5'; expected HH:MM:SS or seconds"),
        ("S;1.s;start=12", "start '12'; expected seconds since 1970, between 2001 and 2262"),
        ("0100;PBS_Server;Job;1.s", "no record; expected MM/DD/YYYY HH:MM:SS;letter;id;values"),
    ],
)
def test_a_bad_record_is_skipped_with_its_line_and_reason(tmp_path: Path, record: str, reason: str) -> None:
    jobs, report = read(log(tmp_path, f"E;7.s;{END}", record, f"E;8.s;{END}"))
    assert set(jobs) == {"7.s", "8.s"}
    [skipped] = report.quoted
    assert skipped.line == 2
    assert skipped.reason.startswith(reason)


def test_a_bad_record_leaves_the_job_as_the_others_tell_it(tmp_path: Path) -> None:
    records = ("Q;1.s;queue=q", "S;1.s;queue=q start=1700000010", "E;1.s;end=now", "Q;2.s;queue=q", "S;2.s;start=noon")
    jobs, report = read(log(tmp_path, *records))
    assert outcomes(jobs) == {"1.s": ("RUNNING", None, None), "2.s": ("PENDING", None, None)}
    assert [skipped.line for skipped in report.quoted] == [3, 5]


def test_a_day_that_no_calendar_has_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("13/14/2023 22:13:20;D;1.s;requestor=a@s\n")
    [skipped] = read(path)[1].quoted
    assert skipped.reason.startswith("time '2023-13-14T22:13:20' is no time")


def test_jobs_beyond_those_remembered_are_told_as_far_as_they_are_known(tmp_path: Path) -> None:
    path = log(tmp_path, "Q;1.s;queue=q", "Q;2.s;queue=q", f"E;1.s;{END}")
    report = Report(str(path), "pbs")
    jobs = [(job.job_id, job.state) for job in PbsReader(waiting_limit=1000).read(path, report, Context("test"))]
    assert jobs == [("1.s", "PENDING"), ("1.s", "COMPLETED"), ("2.s", "PENDING")]


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (0, (0, None)),
        (1, (1, None)),
        (127, (127, None)),
        (128, (128, None)),
        (143, (143, 15)),
        (255, (255, None)),
        (265, (None, 9)),
        (-29, (None, None)),
        (None, (None, None)),
    ],
)
def test_an_exit_status_is_a_code_or_a_signal(status: int | None, meaning: tuple[int | None, int | None]) -> None:
    assert pbs_values.code_and_signal(status) == meaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n1/0", (("n1",), 1)),
        ("n1/0+n1/1+n2/0", (("n1", "n2"), 3)),
        ("n1/0*8+n2/1*4", (("n1", "n2"), 12)),
        ("n1/0-7,9", (("n1",), 9)),
        ("n1/0*0", (("n1",), 0)),
    ],
)
def test_hosts_are_written_by_slot_by_count_or_by_range(text: str, expected: tuple[tuple[str, ...], int]) -> None:
    assert pbs_values.hosts(text) == expected


def test_more_nodes_than_any_cluster_has_are_refused() -> None:
    with pytest.raises(MalformedError, match="names more than 100000 nodes"):
        pbs_values.hosts("+".join(f"n{number}/0" for number in range(100_001)))


def test_a_log_of_the_server_is_no_accounting_log() -> None:
    assert not PbsReader().recognises(Path("20051015"), b"10/15/2011 21:19:25;0008;PBS_Server;Job;1.s;deleted\n")


def test_a_log_goes_on_in_the_next_days_file_and_the_same_file_again_changes_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "20231114", tmp_path / "20231115"
    first.write_text("11/14/2023 22:13:20;Q;1.s;queue=q\n11/14/2023 22:13:30;S;2.s;user=a start=1700000010\n")
    second.write_text(f"11/15/2023 00:00:01;E;1.s;{END}\n")
    with Store.open(tmp_path / "store") as store:
        for path in (first, second, first):
            load_file(store, path, PbsReader(), Loaded(), context=Context("lab"))
        assert {job.job_id: job.state for job in store.jobs.all()} == {"1.s": "COMPLETED", "2.s": "RUNNING"}
        assert len(store.lake.frame("select * from job")) == 3


def stored(folder: Path, *texts: str) -> dict[str, Job]:
    """The jobs of a store that read these as the logs of some days, one after the other."""
    days = [folder / f"202504{day:02}" for day in range(1, len(texts) + 1)]
    with Store.open(folder / "store") as store:
        for path, text in zip(days, texts, strict=True):
            path.write_text(text)
            load_file(store, path, PbsReader(), Loaded(), context=Context("test", zone_named("America/Denver")))
        return {job.job_id: replace(job, fields={}) for job in store.jobs.all()}


@pytest.mark.parametrize("name", ["openpbs-23.txt", "torque.txt"])
def test_records_in_files_of_their_own_tell_the_same_of_jobs_but_their_fields(tmp_path: Path, name: str) -> None:
    whole = read(RECORDED / name, "America/Denver")[0]
    records = (RECORDED / name).read_text().splitlines(keepends=True)
    assert stored(tmp_path, *records) == {job_id: replace(job, fields={}) for job_id, job in whole.items()}


DAY = "11/14/2023 15:13:{};{};1.s;{}\n"  # 22:13 UTC
RAN = DAY.format(30, "S", END.partition(" end=")[0])
FAILED = DAY.format(40, "E", END.replace("Exit_status=0", "Exit_status=271"))
ASKED, ASKED_LATER = (DAY.format(second, "D", "requestor=root@s") for second in (35, 45))


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ((RAN + ASKED, FAILED), ("CANCELLED", None, 15)),
        ((RAN, ASKED + FAILED), ("CANCELLED", None, 15)),
        ((RAN, ASKED, FAILED), ("CANCELLED", None, 15)),
        ((ASKED, FAILED), ("CANCELLED", None, 15)),
        ((RAN + FAILED, ASKED_LATER), ("FAILED", None, 15)),  # whose history was deleted
        ((RAN, FAILED, ASKED_LATER), ("FAILED", None, 15)),
        ((RAN, ASKED), ("CANCELLED", None, None)),
    ],
)
def test_a_deletion_on_another_day_than_the_end_tells_what_it_tells_on_the_same(
    tmp_path: Path, days: tuple[str, ...], expected: tuple[str, int | None, int | None]
) -> None:
    jobs = stored(tmp_path, *days)
    assert outcomes(jobs) == {"1.s": expected}
    assert jobs["1.s"].ended_ns == (1700000020 if FAILED in "".join(days) else 1700000015) * SECOND
    assert jobs["1.s"].started_ns == 1700000010 * SECOND
