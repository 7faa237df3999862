"""`sacct --json`: slurm-22.05.json is what Slurm 22.05.8 wrote; data_parser-0.0.41.json has the same jobs in the names
and shapes of src/plugins/data_parser/v0.0.41/parsers.c (JOB, STEP, PROCESS_EXIT_CODE), with energies added."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.slurm.sacct_json import SacctJsonReader

RECORDED = RECORDINGS / "sacct_json"
OLD, NEW = RECORDED / "slurm-22.05.json", RECORDED / "data_parser-0.0.41.json"
SECOND = 1_000_000_000

LIMIT = {"TimelimitRaw": "10"}  # of all of these jobs; of one, 22.05 does not say so


def read(path: Path) -> tuple[list[Job], Report]:
    report = Report(str(path), "sacct_json")
    return list(SacctJsonReader().read(path, report, Context("test"))), report


def changed(path: Path, tmp_path: Path, job_id: int, change: dict[str, Any]) -> tuple[list[Job], Report]:
    """Return what is read when one job has other values."""
    document = json.loads(path.read_text())
    next(job for job in document["jobs"] if job["job_id"] == job_id).update(change)
    victim = tmp_path / "changed.json"
    victim.write_text(json.dumps(document, indent=2))
    return read(victim)


def test_slurm_22_reports_every_job() -> None:
    jobs, report = read(OLD)
    assert [(job.fields["JobID"], job.job_id, job.name, job.state, job.exit_code, job.signal) for job in jobs] == [
        ("10", "10", "again", "REQUEUED", 0, None),
        ("1", "1", "too slow", "TIMEOUT", 0, None),
        ("3", "3", "three|bars", "FAILED", None, None),
        ("4", "4", "killed", "FAILED", 0, 9),
        ("5", "5", "two nodes", "COMPLETED", 0, None),
        ("6_2", "6", "tasks", "FAILED", None, None),
        ("7+1", "8", "hetero", "COMPLETED", 0, None),
        ("10", "10", "again", "RUNNING", None, None),
        ("12", "12", "never", "CANCELLED", 0, None),
    ]
    assert (report.read, report.skipped) == (9, 0)
    lost = "2 jobs failed with an exit code that this version of sacct writes as 0: it is unknown"
    assert report.notes == [lost]


def test_a_job_has_everything_in_its_record() -> None:
    assert read(OLD)[0][4] == Job(
        system="test",
        job_id="5",
        name="two nodes",
        user="root",
        account="weather",
        partition="test",
        state="COMPLETED",
        exit_code=0,
        nodes=("node2", "node3"),
        node_count=2,
        cpu_count=2,
        submitted_ns=1795299689 * SECOND,
        started_ns=1795299690 * SECOND,
        ended_ns=1795299691 * SECOND,
        elapsed_seconds=1.0,
        fields={
            "JobID": "5",
            "QOS": "normal",
            "Eligible": "1795299689",
            "TimelimitRaw": "10",
            "AllocTRES": "billing=2,cpu=2,node=2",
            "ReqTRES": "billing=2,cpu=2,mem=2M,node=2",
            "steps": "3",
            "max_rss_bytes": "11083776",
        },
    )


def test_a_job_that_never_began_has_no_start_and_a_running_one_no_end() -> None:
    running, never = read(OLD)[0][-2:]
    assert (never.started_ns, never.nodes, never.node_count, never.elapsed_seconds) == (None, (), 3, 0.0)
    assert (running.started_ns, running.ended_ns) == (1795299698 * SECOND, None)


def test_a_start_that_is_when_the_job_became_eligible_is_computed(tmp_path: Path) -> None:
    """Source: src/plugins/openapi/dbv0.0.37/parse.c, which writes `eligible` as time/start."""
    times = {"eligible": 1795299600, "start": 1795299600, "end": 1795299691, "elapsed": 10, "suspended": 31}
    jobs, report = changed(OLD, tmp_path, 5, {"time": times})
    assert jobs[4].started_ns == 1795299650 * SECOND
    assert any(note.startswith("1 jobs whose start is written as when they became eligible") for note in report.notes)


def test_later_versions_tell_the_same_and_exit_codes_too() -> None:
    old = {(job.job_id, job.state): job for job in read(OLD)[0]}
    new, report = read(NEW)
    assert (report.read, report.skipped, report.notes) == (7, 0, [])
    codes = {("3", "FAILED"): 3, ("6", "FAILED"): 2}
    for job in new:
        before = old[job.job_id, job.state]
        assert job.exit_code == codes.get((job.job_id, job.state), before.exit_code)
        same = ("name", "signal", "user", "nodes", "node_count", "cpu_count", "submitted_ns", "started_ns", "ended_ns")
        assert [getattr(job, name) for name in same] == [getattr(before, name) for name in same]
        assert {name: text for name, text in job.fields.items() if name != "energy_from"} == LIMIT | before.fields


def test_the_energy_is_of_the_numbered_steps_and_not_of_the_batch_step() -> None:
    energies = {job.job_id: (job.energy_joules, job.fields.get("energy_from")) for job in read(NEW)[0]}
    assert energies["5"] == (320.0, "steps")
    assert energies["3"] == (None, None)


def test_a_state_with_flags_is_the_word_that_sacct_shows(tmp_path: Path) -> None:
    jobs, _ = changed(NEW, tmp_path, 5, {"state": {"current": ["RUNNING", "COMPLETING"], "reason": "None"}})
    assert [(job.state, job.fields["State"]) for job in jobs if job.job_id == "5"] == [
        ("COMPLETING", "RUNNING COMPLETING")
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"state": {"current": []}}, "state '[]'; expected a word such as COMPLETED, or a list of such"),
        ({"state": None}, "state 'None'; expected a word such as COMPLETED, or a list of such"),
        ({"job_id": None}, "job_id is missing"),
        ({"job_id": "five"}, "job_id 'five'; expected a whole number"),
        ({"job_id": 5.5}, "job_id '5.5'; expected a whole number"),
        ({"job_id": True}, "job_id 'True'; expected a whole number"),
        ({"name": [5]}, "name '[5]'; expected a text"),
        ({"nodes": "../../etc"}, "node list '../../etc': '../../etc' cannot be part of a host name"),
        ({"nodes": "n[1-999999999]"}, "node list 'n[1-999999999]' stands for more than 100000 nodes"),
        ({"time": {"start": 12}}, "time/start '12' is not between 2001 and 2262"),
        ({"time": {"end": 99999999999}}, "time/end '99999999999' is not between 2001 and 2262"),
        ({"time": {"elapsed": -5}}, "time/elapsed '-5'; expected a whole number"),
        ({"tres": {"allocated": "cpu=1"}}, "tres/allocated 'cpu=1'; expected a list"),
        ({"exit_code": {"return_code": "one"}}, "return_code 'one'; expected a whole number"),
    ],
)
def test_each_bad_job_is_skipped_with_its_line_and_reason(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    jobs, report = changed(NEW, tmp_path, 5, change)
    assert len(jobs) == 6
    lines = (tmp_path / "changed.json").read_text().split("\n")
    third = [number for number, text in enumerate(lines, 1) if text == "    {"][2]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [(third, reason)]


def test_a_step_that_is_not_understood_hides_the_sums_of_its_job(tmp_path: Path) -> None:
    steps = json.loads(NEW.read_text())["jobs"][2]["steps"]
    steps[1]["statistics"]["energy"]["consumed"] = "much"
    jobs, report = changed(NEW, tmp_path, 5, {"steps": steps})
    [job] = [job for job in jobs if job.job_id == "5"]
    assert (job.energy_joules, "max_rss_bytes" in job.fields, job.fields["steps"]) == (None, False, "2")
    expected = "a job step of it: statistics/energy/consumed 'much'; expected a whole number"
    assert [skipped.reason for skipped in report.quoted] == [expected]


def test_what_is_in_the_list_and_is_no_job_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text('{"jobs": [5, [], null]}')
    assert [skipped.reason for skipped in read(path)[1].quoted] == [
        "expected a job, found '5, [], null]}'",
        "expected a job, found '[], null]}'",
        "expected a job, found 'null]}'",
    ]


def test_an_export_without_jobs_is_recognised_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text('{"jobs": [], "meta": {"plugin": {"data_parser": "data_parser/v0.0.41"}}, "errors": []}')
    assert SacctJsonReader().recognises(path, path.read_bytes())
    assert read(path)[1].notes == ["no jobs"]


@pytest.mark.parametrize("head", [b'{"jobs": []}', b'{"jobs": [{"job_id": 5}]}', b'[{"jobs": []}]', b'{"runs": [{}]}'])
def test_other_json_is_not_taken_for_it(head: bytes) -> None:
    assert not SacctJsonReader().recognises(Path("x.json"), head)
