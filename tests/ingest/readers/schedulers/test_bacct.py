"""The blocks of `recorded/bacct` are published ones of three clusters; users and hosts were renamed.

Source: uzh/gc3pie, tests of its LSF backend (LSF 7); a script on GitHub that takes lsb.acct apart (LSF 7.06);
ceems-dev/ceems, tests of its LSF fetcher (LSF 10.1, LSB_DISPLAY_YEAR=Y, -UF). The sums of the last are made up.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.schedulers.bacct import BacctReader

RECORDED = RECORDINGS / "bacct"
CUT = (RECORDED / "bacct.txt").read_text()
ALONE = CUT[CUT.index("Job <3329613>") : CUT.index("----", CUT.index("Job <3329613>"))]
ZURICH = ZoneInfo("Europe/Zurich")
SAVED = datetime(2013, 1, 5, tzinfo=UTC)
NO_YEAR = "times name no year: it is the newest with that weekday before the file was last changed; LSB_DISPLAY_YEAR=Y"


def read(path: Path, zone: ZoneInfo = ZURICH) -> tuple[list[Job], Report]:
    report = Report(str(path), "bacct")
    return list(BacctReader().read(path, report, Context("test", zone))), report


def saved(folder: Path, text: str = CUT, when: datetime = SAVED) -> Path:
    path = folder / "bacct.txt"
    path.write_text(text)
    os.utime(path, (when.timestamp(), when.timestamp()))
    return path


def ns(*moment: int, zone: ZoneInfo = ZURICH) -> int:
    return int(datetime(*moment, tzinfo=zone).timestamp()) * 10**9  # type: ignore[misc, arg-type]


def test_a_job_has_everything_of_its_block(tmp_path: Path) -> None:
    jobs, report = read(saved(tmp_path))
    assert jobs[0] == Job(
        system="test",
        job_id="3329613",
        user="ada",
        account="default",
        partition="pub.1h",
        state="COMPLETED",
        exit_code=0,
        nodes=("a3201",),
        node_count=1,
        cpu_count=1,
        submitted_ns=ns(2012, 10, 8, 17, 7, 54),
        started_ns=ns(2012, 10, 8, 17, 8, 44),
        ended_ns=ns(2012, 10, 8, 17, 9, 51),
        elapsed_seconds=67.0,
        fields={
            "command": "sleep 60",
            "chargedSAAP": "/lsf_biol_all/lsf_aeber/ada",
            "fromHost": "brutus4",
            "cwd": "$HOME",
            "outFile": "lsf.o%J",
            "CPU_T": "0.08",
            "WAIT": "50",
            "TURNAROUND": "117",
            "HOG_FACTOR": "0.0007",
            "MEM": "5M",
            "SWAP": "222M",
            "jStatus": "DONE",
            "year_from": "the weekday and the file's modification time: none is given",
        },
    )
    assert (report.read, report.skipped) == (3, 0)
    assert report.notes == [f"9 {NO_YEAR}", "time_zone: 9 times have no zone and were read as Europe/Zurich"]


def test_why_a_job_was_ended_becomes_its_state_and_its_exit_code_is_unknown(tmp_path: Path) -> None:
    _done, owner, failed = read(saved(tmp_path))[0]
    assert (owner.state, owner.exit_code, owner.fields["exitInfo"]) == ("CANCELLED", None, "TERM_OWNER")
    assert (failed.state, failed.exit_code, "exitInfo" in failed.fields) == ("FAILED", None, False)


def test_what_was_cut_at_the_end_of_a_line_is_one_text_again(tmp_path: Path) -> None:
    job = read(saved(tmp_path))[0][2]
    assert job.fields["command"] == (
        '#BSUB -J test155;#BSUB -n 1;#BSUB -R "span[hosts=1] && bigmem";#BSUB -oo test155.o%J;'
        "#BSUB -eo test155.e%J;time run_g03 test155.com"
    )
    assert (job.name, job.fields["cwd"], job.fields["errFile"]) == ("test155", "$HOME/gaussian", "test155.e%J")


def test_a_given_year_is_taken_and_slots_are_those_of_the_allocation() -> None:
    [job], report = read(RECORDED / "bacct-UF-with-year.txt")
    assert (job.submitted_ns, job.ended_ns) == (ns(2026, 4, 12, 17, 23, 38), ns(2026, 4, 12, 17, 24, 14))
    assert (job.nodes, job.cpu_count) == (("nodes-2.example.com", "nodes-1.example.com"), 4)
    assert (job.elapsed_seconds, job.fields["TURNAROUND"], "year_from" in job.fields) == (35.0, "36", False)
    assert (job.fields["command"], job.partition) == ("bash", "interactive")
    wanted = "select[(type == any ) && (ngpus>0)] order[r15s:pg] rusage[ngpus_physical=2.00/host] span[ptile=2]"
    assert job.fields["effectiveResReq"] == wanted
    assert report.notes == ["time_zone: 3 times have no zone and were read as Europe/Zurich"]


@pytest.mark.parametrize(
    ("when", "year"),
    [
        (datetime(2012, 10, 8, 16, tzinfo=UTC), 2012),  # the same day
        (datetime(2012, 10, 6, tzinfo=UTC), 2007),  # two days before: 8 October 2007 was a Monday, too
        (datetime(2018, 10, 6, tzinfo=UTC), 2012),
        (datetime(2018, 10, 9, tzinfo=UTC), 2018),  # six years later, the same weekday again
    ],
)
def test_the_year_is_the_newest_with_that_weekday(tmp_path: Path, when: datetime, year: int) -> None:
    [job] = read(saved(tmp_path, ALONE, when))[0]
    assert job.submitted_ns == ns(year, 10, 8, 17, 7, 54)


def test_a_job_over_new_year_ends_in_the_year_after(tmp_path: Path) -> None:
    text = ALONE.replace("Mon Oct  8 17:07:54", "Mon Dec 31 23:59:00").replace("Mon Oct  8", "Tue Jan  1")
    [job] = read(saved(tmp_path, text))[0]
    assert (job.submitted_ns, job.ended_ns) == (ns(2012, 12, 31, 23, 59), ns(2013, 1, 1, 17, 9, 51))


def test_a_leap_day_is_found(tmp_path: Path) -> None:
    text = ALONE.replace("Mon Oct  8", "Wed Feb 29")
    [job] = read(saved(tmp_path, text))[0]
    assert job.submitted_ns == ns(2012, 2, 29, 17, 7, 54)


def test_a_job_that_was_put_back_started_when_it_was_dispatched_last(tmp_path: Path) -> None:
    again = "Mon Oct  8 17:07:59: Dispatched to <a1>;\nMon Oct  8 17:08:00: Requeued;\n"
    text = ALONE.replace("Mon Oct  8 17:08:44", f"{again}Mon Oct  8 17:08:44")
    [job] = read(saved(tmp_path, text))[0]
    assert (job.nodes, job.started_ns) == (("a3201",), ns(2012, 10, 8, 17, 8, 44))


def test_a_job_that_was_never_dispatched_has_no_start(tmp_path: Path) -> None:
    text = ALONE.replace("Mon Oct  8 17:08:44: Dispatched to <a3201>;\n", "")
    [job] = read(saved(tmp_path, text))[0]
    assert (job.started_ns, job.elapsed_seconds, job.nodes, job.cpu_count) == (None, None, (), None)


@pytest.mark.parametrize(
    ("dispatch", "nodes", "slots"),
    [
        ("Dispatched to 8 Hosts/Processors <8*vr-1>", ("vr-1",), 8),
        ("Dispatched 12 Task(s) on Host(s) <12*n19>, Allocated 12 Slot(s) on Host(s) <12*n19>", ("n19",), 12),
        ("[4] dispatched to <n1>", ("n1",), 1),
        ("Dispatched to <n1> <n2> <n1>", ("n1", "n2"), 3),
    ],
)
def test_hosts_and_slots_are_read_as_every_version_writes_them(
    tmp_path: Path, dispatch: str, nodes: tuple[str, ...], slots: int
) -> None:
    [job] = read(saved(tmp_path, ALONE.replace("Dispatched to <a3201>", dispatch)))[0]
    assert (job.nodes, job.cpu_count) == (nodes, slots)


def test_an_element_of_an_array_is_named_as_lsf_names_it(tmp_path: Path) -> None:
    [job] = read(saved(tmp_path, ALONE.replace("<3329613>", "<3329613[12]>")))[0]
    assert job.job_id == "3329613[12]"


def test_what_a_user_writes_into_a_command_changes_no_other_value(tmp_path: Path) -> None:
    text = ALONE.replace("Command <sleep 60>", "Command <sort <a >b, User <root>, Queue <x>>")
    [job] = read(saved(tmp_path, text))[0]
    assert (job.user, job.partition) == ("ada", "pub.1h")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("Mon Oct  8 17:09:51: C", "Mon Oct  8 17:09:51: Not c", "no time of submission and completion; expected the"),
        ("Mon Oct  8 17:08", "Mon Okt  8 17:08", "dispatch 'Mon Okt  8' is no day; expected one such as Mon Oct  8"),
        ("Mon Oct  8 17:08", "Mon Oct 32 17:08", "dispatch 'Mon Oct 32' is no day of the years up to 2013"),
        ("Mon Oct  8 17:08:44", "Mon Oct  8 25:08:44", "dispatch '2012-10-08T25:08:44' is no time"),
        ("Mon Oct  8 17:08:44:", "Mon Xyz  8 17:08:44 2012:", "dispatch 'Mon Xyz  8' is no day"),
        ("<a3201>", "<../../etc>", "host '../../etc'; expected a name such as n1, or 16*n1"),
        ("     5M    222M", "     5M", "6 sums '0.08 50 117 done 0.0007 5M'; expected CPU_T WAIT TURNAROUND"),
        ("       50            117", "      -50            117", "TURNAROUND or WAIT '-50'; expected whole seconds"),
        ("       50            117", "      500            117", "WAIT 500; expected at most TURNAROUND 117"),
    ],
)
def test_a_bad_block_is_skipped_with_its_line_and_reason(tmp_path: Path, before: str, after: str, reason: str) -> None:
    assert before in ALONE
    jobs, report = read(saved(tmp_path, CUT.replace(before, after)))
    assert [job.job_id for job in jobs] == ["3224113", "101"]
    [skipped] = report.quoted
    assert (skipped.line, skipped.text[:13]) == (11, "Job <3329613>")
    assert skipped.reason.startswith(reason)


def test_other_commands_of_lsf_are_not_taken(tmp_path: Path) -> None:
    running = ALONE[: ALONE.index("Accounting")]  # as bjobs -l and bhist -l begin
    assert not BacctReader().recognises(tmp_path / "x", running.encode())
    assert reader_for(saved(tmp_path)).name == "bacct"
