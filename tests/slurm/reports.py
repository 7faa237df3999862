"""Outputs of all programs of a real Slurm about the same jobs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.slurm.running import NODES, Slurm, run_jobs, running

from crosswind.data.store.store import Store
from crosswind.ingest.load.slurm_poll import Poller
from crosswind.ingest.readers.slurm.sacct import sacct_command
from crosswind.ingest.readers.slurm.squeue import FORMAT

SINCE = "now-1hours"
KATHMANDU = ("env", "TZ=Asia/Kathmandu")
SOURCES: Mapping[str, tuple[str, ...]] = {
    "sacct": tuple(sacct_command(SINCE)),
    "sacct_json": ("sacct", "--allusers", "--duplicates", f"--starttime={SINCE}", "--json"),
    "sacct_local": ("env", "-u", "SLURM_TIME_FORMAT", KATHMANDU[1], *sacct_command(SINCE)[2:]),
    "scontrol": (*KATHMANDU, "scontrol", "show", "job"),
    "scontrol_line": (*KATHMANDU, "scontrol", "--oneliner", "show", "job"),
    "squeue": ("env", "SLURM_TIME_FORMAT=%s", "squeue", "--all", "--states=all", f"--format={FORMAT}"),
    "squeue_table": ("squeue", "--all", "--states=all"),
    "squeue_json": ("squeue", "--all", "--states=all", "--json"),
}


@dataclass(frozen=True)
class SlurmReports:
    """Outputs of all programs of a real Slurm about the same jobs, and the ids of these by their names."""

    home: Path
    ids: Mapping[str, str]

    def export(self, source: str) -> Path:
        """Return the file of what one program printed."""
        return self.home / f"{source}.txt"

    @property
    def polled(self) -> Path:
        """The store that the poller kept in step."""
        return self.home / "store-sync"


def report_by_all(home: Path) -> SlurmReports:
    """Runs the jobs and asks every program; the cluster is ended then, so that no other test sees its jobs."""
    outputs = SlurmReports(home, {})
    with running(home, NODES) as slurm:
        run_jobs(slurm)
        for source, words in SOURCES.items():
            outputs.export(source).write_text(slurm.ask(*words))
        poll(slurm, outputs.polled)
        return SlurmReports(home, slurm.ids)


def poll(slurm: Slurm, place: Path) -> None:
    """Asks the cluster twice, as `crosswind sync slurm` does."""
    with pytest.MonkeyPatch.context() as patch, Store.open(place) as store:
        for name, value in slurm.environment.items():
            patch.setenv(name, value)
        assert Poller(store, "alps").poll(int(time.time()) - 3600).changed > 0
        assert Poller(store, "alps").poll(int(time.time()) - 3600).changed <= 1  # one still runs, and may end any time
