import gzip
import shlex
from pathlib import Path

import pytest
from tests.ingest.job_rows import jobs_of
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import BLOCK_BYTES, LINE_LIMIT, numbered_lines
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.slurm.sacct import COLUMNS, SacctReader, sacct_command

RECORDED = RECORDINGS / "sacct"
SECOND = 1_000_000_000
HEADER = "JobIDRaw|State|JobName\n"


def read(path: Path, time_zone: str = "UTC") -> tuple[list[Job], Report]:
    report = Report(str(path), "sacct")
    tables = SacctReader().read(path, report, Context("test", zone_named(time_zone)))
    return [job for table in tables for job in jobs_of(table)], report


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return tmp_path / "export.txt"


def test_a_real_export_becomes_its_jobs() -> None:
    jobs, report = read(RECORDED / "slurm-22.05.txt")
    assert [(job.job_id, job.name, job.state, job.exit_code, job.signal) for job in jobs] == [
        ("1", "too slow", "TIMEOUT", 0, None),
        ("2", "never", "CANCELLED", 0, None),
        ("3", "stopped", "CANCELLED", 0, None),
        ("4", "ok", "COMPLETED", 0, None),
        ("5", "three|bars", "FAILED", 3, None),
        ("6", "killed", "FAILED", 0, 9),
        ("7", "two nodes", "COMPLETED", 0, None),
        ("9", "again", "REQUEUED", 0, None),
        ("10", "tasks", "COMPLETED", 0, None),
        ("11", "tasks", "FAILED", 1, None),
        ("8", "tasks", "FAILED", 2, None),
        ("9", "again", "RUNNING", None, None),
    ]
    assert (report.read, report.skipped) == (12, 0)
    assert report.notes == [
        "13 job steps folded into their jobs",
        "1 jobs are repeated (requeued or resized): the later line counts",
    ]


def test_a_job_has_everything_of_its_line() -> None:
    job = read(RECORDED / "slurm-22.05.txt")[0][6]
    assert job == Job(
        system="test",
        job_id="7",
        name="two nodes",
        user="root",
        account="weather",
        partition="test",
        state="COMPLETED",
        exit_code=0,
        nodes=("node1", "node2"),
        node_count=2,
        cpu_count=2,
        submitted_ns=1795203256 * SECOND,
        started_ns=1795203261 * SECOND,
        ended_ns=1795203262 * SECOND,
        elapsed_seconds=1.0,
        fields={
            "JobID": "7",
            "QOS": "normal",
            "Eligible": "1795203256",
            "AllocTRES": "billing=2,cpu=2,node=2",
            "ReqTRES": "billing=2,cpu=2,mem=2M,node=2",
            "TotalCPU": "00:00.022",
            "steps": "3",
            "max_rss_bytes": "10973184",
        },
    )


def test_who_cancelled_a_job_is_kept_next_to_its_state() -> None:
    never = read(RECORDED / "slurm-22.05.txt")[0][1]
    assert (never.state, never.fields["State"]) == ("CANCELLED", "CANCELLED by 0")
    assert (never.nodes, never.started_ns, never.node_count) == ((), None, 2)


def test_each_bad_line_is_skipped_with_its_number_and_reason() -> None:
    jobs, report = read(RECORDED / "nasty.txt")
    assert [job.job_id for job in jobs] == ["100", "113", "114", "115"]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (6, "16 fields; expected 15; a | may stand in Comment or JobName"),
        (7, "10 fields; expected 15"),
        (8, "node list 'n[1-999999999]' stands for more than 100000 nodes"),
        (9, "Submit 'yesterday' is no time; expected seconds since 1970 (SLURM_TIME_FORMAT=%s) or YYYY-MM-DDTHH:MM:SS"),
        (10, "State 'completed'; expected a word such as COMPLETED or CANCELLED by 1000"),
        (11, "ExitCode 'nine'; expected code:signal such as 1:9"),
        (12, "ElapsedRaw 'one hour'; expected a whole number"),
        (13, "ConsumedEnergyRaw '-5'; expected a whole number"),
        (14, "job step 109.0 does not follow the line of job 109"),
        (15, "node list '../../etc/passwd': '../../etc/passwd' cannot be part of a host name"),
        (16, "job id '1e3'; expected 123, 123_4, 123+1 or one of these with .step"),
        (17, "Submit '12' is not between 2001 and 2262"),
        (22, "MaxRSS 'twelve'; expected a size such as 3408K, 2.5G or bytes"),
    ]
    assert report.quoted[1].text == "102|ada|1795200000|1795200010|1795200070|60|COMPLETED|0:0|1|4"
    assert "1 jobs end before they start" in report.notes
    assert "1 jobs whose NodeList and NNodes differ" in report.notes


def test_energy_is_never_counted_twice_nor_in_part() -> None:
    energies = {
        job.job_id: (job.energy_joules, job.fields.get("energy_from")) for job in read(RECORDED / "nasty.txt")[0]
    }
    assert energies == {
        "100": (52000.0, "extern"),  # it spans the job; the batch and numbered steps are inside it
        "113": (None, None),  # 2**64 - 2 is Slurm's "no value"
        "114": (None, None),  # one of its steps could not be read
        "115": (620.0, "steps"),  # 300 + 320; the batch step ran beside both
    }


def test_the_energy_of_the_job_itself_comes_first(export: Path) -> None:
    export.write_text(
        "JobID|State|ConsumedEnergyRaw\n1|COMPLETED|5000\n1.0|COMPLETED|4000\n2|COMPLETED|\n2.batch|COMPLETED|70\n"
    )
    assert [job.energy_joules for job in read(export)[0]] == [5000.0, 70.0]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("3408K", 3489792), ("3489792", 3489792), ("2.5M", 2621440), ("1G", 1 << 30), ("2T", 1 << 41)],
)
def test_memory_units_are_powers_of_1024(export: Path, size: str, expected: int) -> None:
    export.write_text(f"JobID|State|MaxRSS\n1|COMPLETED|\n1.0|COMPLETED|{size}\n1.1|COMPLETED|1K\n")
    assert read(export)[0][0].fields["max_rss_bytes"] == str(expected)


@pytest.mark.parametrize("size", ["12X", "12KB", "-1K", "1e3", "1,5G"])
def test_an_unknown_unit_is_refused(export: Path, size: str) -> None:
    export.write_text(f"JobID|State|MaxRSS\n1|COMPLETED|\n1.0|COMPLETED|{size}\n")
    jobs, report = read(export)
    assert "max_rss_bytes" not in jobs[0].fields
    assert report.quoted[0].reason == f"MaxRSS {size!r}; expected a size such as 3408K, 2.5G or bytes"


def test_columns_may_stand_in_any_order(export: Path) -> None:
    export.write_text("State|NodeList|JobID\nCOMPLETED|n[1-2]|12_3\nPENDING|None assigned|12_[4-9%2]\n")
    jobs, report = read(export)
    assert [(job.job_id, job.state, job.nodes) for job in jobs] == [
        ("12_3", "COMPLETED", ("n1", "n2")),
        ("12_[4-9%2]", "PENDING", ()),
    ]
    assert report.skipped == 0


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("JobName|Start", "State and JobIDRaw (or JobID) is missing"),
        ("JobIDRaw|Start", "State is missing"),
        ("State|JobName", "JobIDRaw (or JobID) is missing"),
        ("1|1.batch|COMPLETED", "State and JobIDRaw (or JobID) is missing"),
        ("\x7fELF\x02\x01\x01", "State and JobIDRaw (or JobID) is missing"),
    ],
)
def test_a_header_that_lacks_a_column_is_refused(export: Path, header: str, missing: str) -> None:
    export.write_text(f"{header}\n1|COMPLETED\n")
    with pytest.raises(MalformedError) as refusal:
        read(export)
    assert str(refusal.value).startswith(f"{export}: line 1: column {missing}; found ")


def test_an_empty_file_is_refused(export: Path) -> None:
    export.write_bytes(b"")
    with pytest.raises(MalformedError, match="empty; expected the header line"):
        read(export)


def test_a_header_alone_is_an_export_without_jobs(export: Path) -> None:
    export.write_text(HEADER)
    jobs, report = read(export)
    assert (jobs, report.notes) == ([], ["no jobs after the header"])


def test_a_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="No such file"):
        read(tmp_path / "absent.txt")
    with pytest.raises(UnavailableError, match="Is a directory"):
        read(tmp_path)


def test_byte_order_mark_carriage_returns_and_gzip_change_nothing(tmp_path: Path) -> None:
    plain = (RECORDED / "slurm-22.05.txt").read_bytes()
    expected = read(RECORDED / "slurm-22.05.txt")[0]
    windows = plain.replace(b"\n", b"\r\n")
    for name, content in {
        "mark": b"\xef\xbb\xbf" + plain,
        "windows": windows,
        "gzip": gzip.compress(plain),
        "all": gzip.compress(b"\xef\xbb\xbf" + windows),
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        jobs, report = read(path)
        assert jobs == expected, name
        assert report.skipped == 0, name


def test_a_bar_at_each_line_end_is_accepted(export: Path) -> None:
    export.write_text("JobID|State|\n1|COMPLETED|\n2|FAILED|\n")  # sacct --parsable
    assert [(job.job_id, job.state, job.fields) for job in read(export)[0]] == [
        ("1", "COMPLETED", {}),
        ("2", "FAILED", {}),
    ]


def test_a_bar_in_the_only_free_text_stays_there(export: Path) -> None:
    export.write_text("JobID|JobName|State\n1|a|b||COMPLETED\n")
    assert read(export)[0][0].name == "a|b|"


def test_a_step_is_never_folded_into_another_job(export: Path) -> None:
    export.write_text("JobID|State|MaxRSS\n1|COMPLETED|\n2|broken line\n2.0|COMPLETED|7K\n")
    jobs, report = read(export)
    assert [job.fields for job in jobs] == [{}]
    assert [skipped.line for skipped in report.quoted] == [3, 4]


def test_exports_in_one_file_keep_their_own_columns(export: Path) -> None:
    export.write_text("JobID|State\n1|RUNNING\nState|JobID|End\nCOMPLETED|1|1795200070\n")
    jobs, report = read(export)
    assert [(job.state, job.ended_ns) for job in jobs] == [("RUNNING", None), ("COMPLETED", 1795200070 * SECOND)]
    assert report.notes == [
        "1 further header lines: several exports in one file",
        "1 jobs are repeated (requeued or resized): the later line counts",
    ]


def test_a_job_named_like_a_header_is_a_job(export: Path) -> None:
    export.write_text(HEADER + "1|COMPLETED|State|JobID\n2|COMPLETED|fine\n")
    assert [job.name for job in read(export)[0]] == ["State|JobID", "fine"]


def test_a_last_line_without_its_end_is_not_believed(export: Path) -> None:
    export.write_text(HEADER + "1|COMPLETED|whole\n2|COMPLETED|cut sho")
    jobs, report = read(export)
    assert [job.name for job in jobs] == ["whole"]
    assert [(skipped.line, skipped.text) for skipped in report.quoted] == [(3, "2|COMPLETED|cut sho")]
    assert "no line end" in report.quoted[0].reason


def test_any_cut_of_a_file_leaves_the_jobs_before_it(export: Path) -> None:
    whole = (RECORDED / "nasty.txt").read_bytes()
    names = [job.name for job in read(RECORDED / "nasty.txt")[0]]
    header = whole.index(b"\n") + 1
    for size in range(header, len(whole), 7):
        export.write_bytes(whole[:size])
        jobs, report = read(export)
        assert [job.name for job in jobs[:-1]] == names[: max(len(jobs) - 1, 0)]
        assert report.read == len(jobs)


def test_lines_that_are_no_text_are_quoted_and_skipped(export: Path) -> None:
    export.write_bytes(HEADER.encode() + b"1|COMPLETED|\xff\xfe\n2|COMPLETED|a\0b\n3|COMPLETED|fine\n")
    jobs, report = read(export)
    assert [job.job_id for job in jobs] == ["3"]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (2, "not UTF-8: invalid start byte at byte 13"),
        (3, "holds a zero byte, which no text does"),
    ]


def test_an_endless_line_is_skipped_without_being_held(export: Path) -> None:
    export.write_text(HEADER + "1|COMPLETED|" + "x" * (3 * LINE_LIMIT) + "\n2|COMPLETED|fine\n")
    jobs, report = read(export)
    assert [job.job_id for job in jobs] == ["2"]
    assert [(skipped.line, skipped.reason, len(skipped.text)) for skipped in report.quoted] == [
        (2, "longer than 1048576 bytes", 200)
    ]


def test_a_damaged_gzip_file_gives_what_comes_before_the_damage(export: Path) -> None:
    lines = "".join(f"{number}|COMPLETED|job {number * 7919 % 10007}\n" for number in range(1, 20_001))
    export.write_bytes(gzip.compress((HEADER + lines).encode())[:-20_000])
    jobs, report = read(export)
    assert 1000 < len(jobs) < 20_000
    assert [job.job_id for job in jobs] == [str(number + 1) for number in range(len(jobs))]
    assert [
        "damaged or cut short" in skipped.reason or "no line end" in skipped.reason for skipped in report.quoted
    ] == [True] * 2


def test_a_file_that_unpacks_without_end_is_refused(export: Path) -> None:
    export.write_bytes(gzip.compress(b"x" * (8 * LINE_LIMIT)))
    with pytest.raises(MalformedError, match="more than 4000000 bytes"):
        list(numbered_lines(export, Report(str(export), "sacct"), file_limit=4_000_000))


def test_local_times_are_read_in_the_given_zone_and_noted(export: Path) -> None:
    export.write_text("JobID|State|Submit|Start|End\n1|RUNNING|2026-07-01T12:00:00|2026-07-01T12:00:00+0545|Unknown\n")
    [utc], utc_report = read(export)
    [berlin], berlin_report = read(export, "Europe/Berlin")
    assert utc.submitted_ns == 1782907200 * SECOND
    assert berlin.submitted_ns == (1782907200 - 7200) * SECOND
    assert utc.started_ns == berlin.started_ns == (1782907200 - 20700) * SECOND
    assert utc_report.notes == ["time_zone: 1 times have no zone and were read as UTC"]
    assert berlin_report.notes == ["time_zone: 1 times have no zone and were read as Europe/Berlin"]


def test_times_at_a_change_of_clocks_are_noted(export: Path) -> None:
    export.write_text(
        "JobID|State|Submit|Start|End\n1|COMPLETED|2026-10-25T02:30:00|2026-10-25T03:00:00|2026-10-25T04:00:00\n"
    )
    [job], report = read(export, "Europe/Berlin")
    assert job.submitted_ns == 1792888200 * SECOND  # 00:30 UTC, the first of the two
    assert report.notes[1].startswith("1 times, 2026-10-25T02:30:00 first, come twice or never when clocks change")


@pytest.mark.parametrize(
    "moment", ["2026-02-30T00:00:00", "20261120", "1795200000.5", "-1795200000", "99999999999", "3-01:00"]
)
def test_what_is_no_time_is_refused(export: Path, moment: str) -> None:
    export.write_text(f"JobID|State|Start\n1|COMPLETED|{moment}\n")
    jobs, report = read(export)
    assert jobs == []
    assert f"Start {moment!r} is" in report.quoted[0].reason


def test_an_elapsed_time_may_be_written_by_the_clock(export: Path) -> None:
    export.write_text("JobID|State|Elapsed\n1|COMPLETED|2-03:04:05\n2|COMPLETED|00:00:07\n")
    assert [job.elapsed_seconds for job in read(export)[0]] == [183845.0, 7.0]


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "", "Europe"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="expected one such as Europe/Berlin"):
        zone_named(name)


@pytest.mark.thorough
def test_jobs_come_while_the_file_is_still_read(export: Path) -> None:
    export.write_text(HEADER + "1|COMPLETED|a\n" + "2|COMPLETED|b\n" * (BLOCK_BYTES // 10))
    report = Report(str(export), "sacct")
    tables = SacctReader().read(export, report, Context("test"))
    assert jobs_of(next(tables))[0].name == "a"
    assert 1 < report.read < BLOCK_BYTES // 10


def test_the_command_asks_for_all_that_is_read() -> None:
    assert sacct_command("2026-11-01") == [
        *("env", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--duplicates", "--noconvert", "--parsable2"),
        *("--starttime=2026-11-01", f"--format={','.join(COLUMNS)}"),
    ]


def test_the_command_is_the_documented_one() -> None:
    documentation = Path(__file__).parents[4] / "docs" / "readers" / "slurm.md"
    assert f"\n{shlex.join(sacct_command('now-7days'))} > jobs.txt\n" in documentation.read_text()


@pytest.mark.parametrize("since", ["", "-1", "2026-11-01 --help", "now;reboot", "$(id)"])
def test_a_time_that_is_none_never_reaches_a_command_line(since: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a time"):
        sacct_command(since)
