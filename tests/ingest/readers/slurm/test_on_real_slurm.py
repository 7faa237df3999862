"""The same jobs of a real Slurm, reported by all of its programs: each reader gives what was submitted.

Needs root and Debian's Slurm packages.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.slurm.running import NODES, STATES

from crosswind.data.schema.job import Job
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.formats import reader_for

ACCOUNTING = ("sacct", "sacct_json", "sync")
LIVE = ("scontrol", "scontrol_line", "squeue", "squeue_json")
LOCAL = ("scontrol", "scontrol_line")  # asked in Kathmandu


@dataclass(frozen=True)
class JobsBySource:
    """The ids of the jobs by their names, and by source the jobs that were read."""

    ids: Mapping[str, str]
    jobs: Mapping[str, Mapping[str, Job]]


@pytest.fixture(scope="module")
def slurm(slurm_reports: Any) -> JobsBySource:
    """Return what every program reported, each stored in a store of its own as `crosswind ingest` does."""
    jobs = {}
    for source in (*ACCOUNTING[:2], *LIVE, "squeue_table"):
        path = slurm_reports.export(source)
        with Store.open(slurm_reports.home / f"store-{source}") as store:
            zone = zone_named("Asia/Kathmandu" if source in LOCAL else "UTC")
            load_file(store, path, reader_for(path), loaded := Loaded(), context=Context("alps", zone))
            assert loaded.reports[0].skipped == 0, loaded.reports[0]
            jobs[source] = stored(store)
    with Store.open(slurm_reports.polled) as store:
        jobs["sync"] = stored(store)
    return JobsBySource(slurm_reports.ids, jobs)


def stored(store: Store) -> dict[str, Job]:
    """The jobs by the ids that Slurm shows."""
    return {job.fields.get("JobID", job.job_id): job for job in store.jobs.all()}


def job_of(slurm: JobsBySource, source: str, name: str) -> Job:
    return slurm.jobs[source][slurm.ids[name]]


@pytest.mark.parametrize("source", [*ACCOUNTING, *LIVE, "squeue_table"])
def test_states_are_those_that_the_jobs_came_to(slurm: JobsBySource, source: str) -> None:
    assert {name: job_of(slurm, source, name).state for name in STATES} == STATES


@pytest.mark.parametrize("source", [*ACCOUNTING, *LIVE])
def test_names_users_and_places_are_those_that_were_requested(slurm: JobsBySource, source: str) -> None:
    for name in ("too slow", "stopped", "ok", "three|bars", "two nodes", "again", "never"):
        job = job_of(slurm, source, name)
        assert (job.job_id, job.name) == (slurm.ids[name], name)
        assert (job.user, job.account, job.partition, job.system) == ("root", "weather", "test", "alps")
    both = job_of(slurm, source, "two nodes")
    assert (len(both.nodes), both.node_count, both.cpu_count) == (2, 2, 2)
    assert set(both.nodes) < {"node1", "node2", "node3", "node4"}
    assert (job_of(slurm, source, "never").nodes, job_of(slurm, source, "never").node_count) == ((), NODES)


@pytest.mark.parametrize("source", ["sacct", "sync", "scontrol", "scontrol_line", "squeue_json"])
def test_exit_codes_are_those_of_the_scripts(slurm: JobsBySource, source: str) -> None:
    expected = {"ok": (0, None), "three|bars": (3, None), "killed": (0, 9), "again": (None, None)}
    jobs = {name: job_of(slurm, source, name) for name in expected}
    assert {name: (job.exit_code, job.signal) for name, job in jobs.items()} == expected


def test_the_json_of_this_version_loses_exit_codes_and_they_are_unknown(slurm: JobsBySource) -> None:
    assert job_of(slurm, "sacct_json", "three|bars").exit_code is None
    assert (job_of(slurm, "sacct_json", "killed").exit_code, job_of(slurm, "sacct_json", "killed").signal) == (0, 9)


@pytest.mark.parametrize("source", ["sacct_json", "sync", *LIVE])
def test_times_are_the_same_from_every_program(slurm: JobsBySource, source: str) -> None:
    for name in STATES:
        job, accounted = job_of(slurm, source, name), job_of(slurm, "sacct", name)
        assert job.submitted_ns == accounted.submitted_ns, name
        assert (job.started_ns, job.ended_ns) == (accounted.started_ns, accounted.ended_ns), name
    assert job_of(slurm, source, "never").started_ns is None
    assert job_of(slurm, source, "again").ended_ns is None


@pytest.mark.parametrize("source", [*ACCOUNTING, *LIVE])
def test_elements_of_arrays_and_components_are_jobs_of_their_own(slurm: JobsBySource, source: str) -> None:
    array, leader = slurm.ids["tasks"], slurm.ids["hetero"]
    shown = [f"{array}_{task}" for task in range(3)] + [f"{leader}+0", f"{leader}+1"]
    jobs = [slurm.jobs[source][job_id] for job_id in shown]
    assert [job.state for job in jobs] == ["COMPLETED", "FAILED", "FAILED", "COMPLETED", "COMPLETED"]
    assert len({job.job_id for job in jobs}) == 5
    assert [(job.node_count, job.cpu_count) for job in jobs[3:]] == [(1, 1), (1, 2)]
    assert [job.job_id for job in jobs] == [slurm.jobs["sacct"][job_id].job_id for job_id in shown]


@pytest.mark.parametrize("source", LIVE)
def test_what_waits_has_no_times_but_its_submission(slurm: JobsBySource, source: str) -> None:
    job = slurm.jobs[source][f"{slurm.ids['held']}_[5-9%2]"]
    assert (job.state, job.started_ns, job.ended_ns, job.exit_code) == ("PENDING", None, None, None)
    assert job.submitted_ns
    assert abs(job.submitted_ns - time.time_ns()) < 300e9


def test_both_forms_of_the_accounts_tell_the_same_of_steps(slurm: JobsBySource) -> None:
    for name in ("ok", "two nodes", "stopped", "never"):
        text, json = job_of(slurm, "sacct", name), job_of(slurm, "sacct_json", name)
        same = ("JobID", "QOS", "Eligible", "AllocTRES", "ReqTRES", "steps", "max_rss_bytes")
        assert [text.fields.get(field) for field in same] == [json.fields.get(field) for field in same]
        assert (text.elapsed_seconds, text.energy_joules) == (json.elapsed_seconds, json.energy_joules)
        assert (text.nodes, text.node_count, text.cpu_count) == (json.nodes, json.node_count, json.cpu_count)


def test_what_sync_keeps_is_what_an_export_gives(slurm: JobsBySource) -> None:
    for name in ("too slow", "stopped", "ok", "three|bars", "killed", "two nodes", "never"):
        assert job_of(slurm, "sync", name) == job_of(slurm, "sacct", name)


def test_a_requeued_job_is_reported_as_it_is_now(slurm: JobsBySource) -> None:
    for source in ("scontrol", "squeue_json"):
        assert job_of(slurm, source, "again").fields["Restarts"] == "1"
    jobs = [job_of(slurm, source, "again") for source in ACCOUNTING]
    assert [(job.state, job.ended_ns) for job in jobs] == [("RUNNING", None)] * 3


def test_the_table_has_the_ids_that_are_shown_and_no_doubtful_names(slurm: JobsBySource) -> None:
    table = slurm.jobs["squeue_table"]
    assert table[f"{slurm.ids['tasks']}_1"].job_id == f"{slurm.ids['tasks']}_1"
    assert (table[slurm.ids["ok"]].name, table[slurm.ids["three|bars"]].name) == ("ok", "")
