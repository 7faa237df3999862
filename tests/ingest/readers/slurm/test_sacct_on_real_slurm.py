"""Jobs that a real Slurm ran, as read from its accounting; needs root and Debian's Slurm packages."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.job_rows import jobs_of
from tests.slurm.running import STATES

from crosswind.data.schema.job import Job
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.slurm.sacct import SacctReader


def read(path: Path, report: Report, zone: str = "UTC") -> list[Job]:
    """The jobs of an export."""
    tables = SacctReader().read(path, report, Context("test", zone_named(zone)))
    return [job for table in tables for job in jobs_of(table)]


@pytest.fixture(scope="module")
def asked(slurm_reports: Any) -> Mapping[str, str]:
    """The ids of the jobs by name."""
    ids: Mapping[str, str] = slurm_reports.ids
    return ids


@pytest.fixture(scope="module")
def report(slurm_reports: Any) -> Report:
    return Report(str(slurm_reports.export("sacct")), "sacct")


@pytest.fixture(scope="module")
def jobs(report: Report) -> dict[str, list[Job]]:
    """The jobs that were read, by name."""
    named: dict[str, list[Job]] = {}
    for job in read(Path(report.path), report):
        named.setdefault(job.name, []).append(job)
    return named


def test_every_line_of_a_real_export_is_understood(jobs: dict[str, list[Job]], report: Report) -> None:
    assert (report.skipped, report.quoted) == (0, [])
    assert report.read == sum(map(len, jobs.values()))
    job_count = sum(len(group) for name, group in jobs.items() if name != "held")  # which accounting may know or not
    assert job_count == 14  # ten submitted, two more array elements, one more component, one requeued
    assert "1 jobs are repeated (requeued or resized): the later line counts" in report.notes


@pytest.mark.parametrize(
    ("name", "exit_code", "signal"),
    [
        ("ok", 0, None),
        ("three|bars", 3, None),
        ("killed", 0, 9),
        ("two nodes", 0, None),
        ("stopped", 0, None),
        ("never", 0, None),
        ("too slow", 0, None),
    ],
)
def test_a_job_ends_on_request(
    jobs: dict[str, list[Job]], asked: Mapping[str, str], name: str, exit_code: int, signal: int | None
) -> None:
    [job] = jobs[name]
    assert (job.state, job.exit_code, job.signal) == (STATES[name], exit_code, signal)
    assert (job.job_id, job.user, job.account, job.partition) == (asked[name], "root", "weather", "test")


def test_nodes_are_those_that_the_job_ran_on(jobs: dict[str, list[Job]]) -> None:
    [both] = jobs["two nodes"]
    nodes = {"node1", "node2", "node3", "node4"}
    assert (len(set(both.nodes) & nodes), both.node_count, both.cpu_count) == (2, 2, 2)
    [one] = jobs["ok"]
    assert (len(one.nodes), set(one.nodes) < nodes) == (1, True)
    [never] = jobs["never"]
    assert (never.nodes, never.started_ns) == ((), None)


def test_times_are_those_of_the_job(jobs: dict[str, list[Job]]) -> None:
    [job] = jobs["ok"]
    assert job.submitted_ns is not None
    assert job.started_ns is not None
    assert job.ended_ns is not None
    assert abs(job.submitted_ns - time.time_ns()) < 300e9
    assert job.submitted_ns <= job.started_ns < job.ended_ns
    assert job.elapsed_seconds == (job.ended_ns - job.started_ns) * 1e-9
    assert 2 <= job.elapsed_seconds <= 6  # it slept 2 s; starting and ending take some on a busy machine


def test_job_steps_are_folded_into_their_job(jobs: dict[str, list[Job]]) -> None:
    [job] = jobs["two nodes"]
    assert job.fields["steps"] == "3"  # the batch script and two srun
    [slept] = jobs["ok"]
    assert 1_000_000 < int(slept.fields["max_rss_bytes"]) < 100_000_000  # a shell that sleeps


def test_array_elements_are_jobs_of_their_own(jobs: dict[str, list[Job]], asked: Mapping[str, str]) -> None:
    assert {job.fields["JobID"]: job.exit_code for job in jobs["tasks"]} == {
        f"{asked['tasks']}_{n}": n for n in range(3)
    }
    assert len({job.job_id for job in jobs["tasks"]}) == 3


def test_a_requeued_job_comes_twice_and_last_as_it_is_now(jobs: dict[str, list[Job]]) -> None:
    first, second = jobs["again"]
    assert first.job_id == second.job_id
    assert (first.state, second.state) == ("REQUEUED", "RUNNING")
    assert (second.ended_ns, second.exit_code) == (None, None)


def test_an_unmeasured_energy_is_unknown_and_not_zero(jobs: dict[str, list[Job]]) -> None:
    assert {job.energy_joules for group in jobs.values() for job in group} == {None}


def test_local_times_are_read_in_the_zone_that_they_were_written_in(
    slurm_reports: Any, jobs: dict[str, list[Job]]
) -> None:
    path = slurm_reports.export("sacct_local")
    report = Report(str(path), "sacct")
    [local] = [job for job in read(path, report, "Asia/Kathmandu") if job.name == "ok"]
    [job] = jobs["ok"]
    assert (local.submitted_ns, local.started_ns, local.ended_ns) == (job.submitted_ns, job.started_ns, job.ended_ns)
