"""The same jobs of a real Slurm, told by all of its programs: what was asked is what each reader makes of them.

Needs root and Debian's Slurm packages.
"""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from crosswind.data.job import Job
from crosswind.data.store import Store
from crosswind.ingest.load import Loaded
from crosswind.ingest.load_file import load_file
from crosswind.ingest.readers import reader_for
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.reader import Context
from crosswind.ingest.readers.slurm.sacct import sacct_command
from crosswind.ingest.readers.slurm.squeue import squeue_command
from crosswind.ingest.slurm_poll import Poller

SCRIPT = Path(__file__).parent.parent / "slurm" / "cluster.py"
NODES = 4
PATIENCE_SECONDS = 60.0  # slurmctld looks for jobs past their time every 30 s
SOURCES: Mapping[str, tuple[str, ...]] = {
    "sacct": tuple(sacct_command("now-1hours")),
    "sacct_json": ("sacct", "--allusers", "--duplicates", "--starttime=now-1hours", "--json"),
    "scontrol": ("env", "TZ=Asia/Kathmandu", "scontrol", "show", "job"),
    "scontrol_line": ("env", "TZ=Asia/Kathmandu", "scontrol", "--oneliner", "show", "job"),
    "squeue": tuple(squeue_command()),
    "squeue_table": ("squeue", "--all", "--states=all"),
    "squeue_json": ("squeue", "--all", "--states=all", "--json"),
}
STATES = {"too slow": "TIMEOUT", "stopped": "CANCELLED", "never": "CANCELLED", "ok": "COMPLETED", "again": "RUNNING"}
STATES |= {"three|bars": "FAILED", "killed": "FAILED", "two nodes": "COMPLETED"}
ACCOUNTING = ("sacct", "sacct_json", "sync")
LIVE = ("scontrol", "scontrol_line", "squeue", "squeue_json")


@dataclass
class Slurm:
    """A cluster of pretended nodes, what was asked of it, and what its programs told."""

    home: Path
    environment: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)
    told: dict[str, dict[str, Job]] = field(default_factory=dict)

    def ask(self, *words: str) -> str:
        question = ["timeout", "20", *words]
        answer = subprocess.run(question, env=self.environment, cwd=self.home, capture_output=True, check=False)
        assert answer.returncode == 0, f"{' '.join(words)}: {answer.stderr.decode()}"
        return answer.stdout.decode()

    def submit(self, name: str, script: str, *options: str) -> None:
        fixed = ("--parsable", "--output=/dev/null", "--account=weather", f"--job-name={name}")
        self.ids[name] = self.ask("sbatch", *fixed, *options, f"--wrap={script}").strip()

    def wait_for(self, expected: Mapping[str, str]) -> None:
        """Waits until jobs are in these states, as the accounting sees them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (seen := self.states()) | expected != seen:
            assert time.monotonic() < deadline, f"{expected} expected, seen {seen}"
            time.sleep(0.3)

    def states(self) -> dict[str, str]:
        """States by the ids that Slurm shows, or by names."""
        columns = "--format=JobID,State,JobName"
        lines = self.ask("sacct", "--noheader", "--allocations", "--parsable2", columns, "--starttime=now-1hours")
        rows = [line.split("|", 2) for line in lines.splitlines()]
        return {key: state.split()[0] for shown, state, name in rows for key in (shown, name)}


def cluster() -> ModuleType:
    """tests/slurm/cluster.py, which stands outside any package."""
    spec = importlib.util.spec_from_file_location("cluster", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if lacking := cluster().missing():
        if os.environ.get("CI") == "true":
            pytest.fail(lacking)
        pytest.skip(lacking)
    home = tmp_path_factory.mktemp("slurm")
    try:
        command = [sys.executable, str(SCRIPT), "up", str(home), "--nodes", str(NODES)]
        started = subprocess.run(command, capture_output=True, text=True, check=False)
        assert started.returncode == 0, started.stderr
        found = Slurm(home, cluster().environment(home))
        run_jobs(found)
        listen(found)
        yield found
    finally:
        subprocess.run([sys.executable, str(SCRIPT), "down", str(home)], check=True)


def run_jobs(slurm: Slurm) -> None:
    """Submits one job of each kind, and waits until each is where it should be."""
    slurm.submit("too slow", "sleep 300", "--time=1")
    slurm.submit("stopped", "sleep 300")
    slurm.submit("again", "sleep 300", "--requeue")
    slurm.wait_for({"too slow": "RUNNING", "stopped": "RUNNING", "again": "RUNNING"})
    slurm.submit("never", "true", f"--nodes={NODES}", "--exclusive")
    slurm.wait_for({"never": "PENDING"})  # a job cancelled before slurmdbd knows it gets that moment as its start
    slurm.ask("scontrol", "update", f"jobid={slurm.ids['too slow']}", "endtime=now")  # limits are whole minutes
    slurm.ask("scontrol", "requeue", slurm.ids["again"])
    slurm.ask("scancel", slurm.ids["stopped"], slurm.ids["never"])
    slurm.submit("ok", "sleep 2")
    slurm.submit("three|bars", "exit 3")
    slurm.submit("killed", "kill -KILL $$")
    slurm.submit("two nodes", "srun sleep 1; srun true", "--nodes=2", "--ntasks=2")
    slurm.submit("tasks", "exit $SLURM_ARRAY_TASK_ID", "--array=0-2")
    fixed = ("--parsable", "--output=/dev/null", "--account=weather", "--job-name=hetero", "--ntasks=1")
    wrapped = "--wrap=srun --het-group=0,1 sleep 1"
    slurm.ids["hetero"] = slurm.ask("sbatch", *fixed, ":", "--nodes=1", "--ntasks=2", wrapped).strip()
    slurm.submit("held", "true", "--hold", "--array=5-9%2")
    slurm.ask("scontrol", "update", f"jobid={slurm.ids['again']}", "starttime=now")  # it would wait two minutes
    array, leader = slurm.ids["tasks"], slurm.ids["hetero"]
    slurm.wait_for(
        STATES
        | {f"{array}_0": "COMPLETED", f"{array}_1": "FAILED", f"{array}_2": "FAILED"}
        | {f"{leader}+0": "COMPLETED", f"{leader}+1": "COMPLETED"}
    )


def listen(slurm: Slurm) -> None:
    """Has every program tell, and stores each in a store of its own as `crosswind ingest` does."""
    for source, words in SOURCES.items():
        path = slurm.home / f"{source}.txt"
        path.write_text(slurm.ask(*words))
        with Store.open(slurm.home / f"store-{source}") as store:
            zone = zone_named("Asia/Kathmandu" if "TZ=Asia/Kathmandu" in words else "UTC")
            load_file(store, path, reader_for(path), loaded := Loaded(), context=Context("alps", zone))
            assert loaded.reports[0].skipped == 0, loaded.reports[0]
            slurm.told[source] = stored(store)
    with pytest.MonkeyPatch.context() as patch, Store.open(slurm.home / "store-sync") as store:
        for name, value in slurm.environment.items():
            patch.setenv(name, value)
        assert Poller(store, "alps").poll(int(time.time()) - 3600).changed > 0
        assert Poller(store, "alps").poll(int(time.time()) - 3600).changed <= 1  # one still runs, and may end any time
        slurm.told["sync"] = stored(store)


def stored(store: Store) -> dict[str, Job]:
    """The jobs by the ids that Slurm shows."""
    return {job.fields.get("JobID", job.job_id): job for job in store.jobs.all()}


def job_of(slurm: Slurm, source: str, name: str) -> Job:
    return slurm.told[source][slurm.ids[name]]


@pytest.mark.parametrize("source", [*ACCOUNTING, *LIVE, "squeue_table"])
def test_states_are_those_that_the_jobs_came_to(slurm: Slurm, source: str) -> None:
    assert {name: job_of(slurm, source, name).state for name in STATES} == STATES


@pytest.mark.parametrize("source", [*ACCOUNTING, *LIVE])
def test_names_users_and_places_are_those_that_were_asked_for(slurm: Slurm, source: str) -> None:
    for name in ("too slow", "stopped", "ok", "three|bars", "two nodes", "again", "never"):
        job = job_of(slurm, source, name)
        assert (job.job_id, job.name) == (slurm.ids[name], name)
        assert (job.user, job.account, job.partition, job.system) == ("root", "weather", "test", "alps")
    both = job_of(slurm, source, "two nodes")
    assert (len(both.nodes), both.node_count, both.cpu_count) == (2, 2, 2)
    assert set(both.nodes) < {"node1", "node2", "node3", "node4"}
    assert (job_of(slurm, source, "never").nodes, job_of(slurm, source, "never").node_count) == ((), NODES)


@pytest.mark.parametrize("source", ["sacct", "sync", "scontrol", "scontrol_line", "squeue_json"])
def test_exit_codes_are_those_of_the_scripts(slurm: Slurm, source: str) -> None:
    expected = {"ok": (0, None), "three|bars": (3, None), "killed": (0, 9), "again": (None, None)}
    jobs = {name: job_of(slurm, source, name) for name in expected}
    assert {name: (job.exit_code, job.signal) for name, job in jobs.items()} == expected


def test_the_json_of_this_version_loses_exit_codes_and_they_are_unknown(slurm: Slurm) -> None:
    assert job_of(slurm, "sacct_json", "three|bars").exit_code is None
    assert (job_of(slurm, "sacct_json", "killed").exit_code, job_of(slurm, "sacct_json", "killed").signal) == (0, 9)


@pytest.mark.parametrize("source", ["sacct_json", "sync", *LIVE])
def test_times_are_the_same_whoever_tells_them(slurm: Slurm, source: str) -> None:
    for name in STATES:
        job, told = job_of(slurm, source, name), job_of(slurm, "sacct", name)
        assert job.submitted_ns == told.submitted_ns, name
        assert (job.started_ns, job.ended_ns) == (told.started_ns, told.ended_ns), name
    assert job_of(slurm, source, "never").started_ns is None
    assert job_of(slurm, source, "again").ended_ns is None


@pytest.mark.parametrize("source", [*ACCOUNTING, *LIVE])
def test_elements_of_arrays_and_components_are_jobs_of_their_own(slurm: Slurm, source: str) -> None:
    array, leader = slurm.ids["tasks"], slurm.ids["hetero"]
    shown = [f"{array}_{task}" for task in range(3)] + [f"{leader}+0", f"{leader}+1"]
    jobs = [slurm.told[source][each] for each in shown]
    assert [job.state for job in jobs] == ["COMPLETED", "FAILED", "FAILED", "COMPLETED", "COMPLETED"]
    assert len({job.job_id for job in jobs}) == 5
    assert [(job.node_count, job.cpu_count) for job in jobs[3:]] == [(1, 1), (1, 2)]
    assert [job.job_id for job in jobs] == [slurm.told["sacct"][each].job_id for each in shown]


@pytest.mark.parametrize("source", LIVE)
def test_what_waits_has_no_times_but_its_submission(slurm: Slurm, source: str) -> None:
    job = slurm.told[source][f"{slurm.ids['held']}_[5-9%2]"]
    assert (job.state, job.started_ns, job.ended_ns, job.exit_code) == ("PENDING", None, None, None)
    assert job.submitted_ns
    assert abs(job.submitted_ns - time.time_ns()) < 300e9


def test_both_forms_of_the_accounts_tell_the_same_of_steps(slurm: Slurm) -> None:
    for name in ("ok", "two nodes", "stopped", "never"):
        text, json = job_of(slurm, "sacct", name), job_of(slurm, "sacct_json", name)
        same = ("JobID", "QOS", "Eligible", "AllocTRES", "ReqTRES", "steps", "max_rss_bytes")
        assert [text.fields.get(each) for each in same] == [json.fields.get(each) for each in same]
        assert (text.elapsed_seconds, text.energy_joules) == (json.elapsed_seconds, json.energy_joules)
        assert (text.nodes, text.node_count, text.cpu_count) == (json.nodes, json.node_count, json.cpu_count)


def test_what_sync_keeps_is_what_an_export_gives(slurm: Slurm) -> None:
    for name in ("too slow", "stopped", "ok", "three|bars", "killed", "two nodes", "never"):
        assert job_of(slurm, "sync", name) == job_of(slurm, "sacct", name)


def test_a_requeued_job_is_told_as_it_is_now(slurm: Slurm) -> None:
    for source in ("scontrol", "squeue_json"):
        assert job_of(slurm, source, "again").fields["Restarts"] == "1"
    jobs = [job_of(slurm, source, "again") for source in ACCOUNTING]
    assert [(job.state, job.ended_ns) for job in jobs] == [("RUNNING", None)] * 3


def test_the_table_has_the_ids_that_are_shown_and_no_doubtful_names(slurm: Slurm) -> None:
    table = slurm.told["squeue_table"]
    assert table[f"{slurm.ids['tasks']}_1"].job_id == f"{slurm.ids['tasks']}_1"
    assert (table[slurm.ids["ok"]].name, table[slurm.ids["three|bars"]].name) == ("ok", "")
