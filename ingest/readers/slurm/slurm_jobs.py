"""Jobs of Slurm from its live programs and its JSON, which mix facts and expectations."""

from collections import Counter
from dataclasses import dataclass, field, replace

from crosswind.data.schema.job import Job
from crosswind.data.store.job_accounts import WAITING
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import Clock

COMPACT = {  # squeue(1), JOB STATE CODES
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "SI": "SIGNALING",
    "SE": "SPECIAL_EXIT",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "S": "SUSPENDED",
    "TO": "TIMEOUT",
}
GOING = ("RUNNING", "SUSPENDED", "CONFIGURING", "RESIZING", "SIGNALING", "STOPPED")  # COMPLETING ones have ended


def as_happened(job: Job, *, are_nodes_given: bool = True) -> Job:
    """Return the job without times that Slurm only expects, and without the exit code 0 that it shows until the end."""
    if job.state in WAITING:
        job = replace(job, started_ns=None, elapsed_seconds=None)
    if job.state in WAITING or job.state in GOING:
        return replace(job, ended_ns=None, exit_code=None, signal=None)
    has_run = bool(job.nodes) or not are_nodes_given or job.seconds is None or job.seconds > 0
    if job.state == "CANCELLED" and not has_run:  # while it waited: the start shown is that moment
        return replace(job, started_ns=None)
    return job


@dataclass
class Steps:
    """The figures of one job's steps."""

    count: int = 0
    max_rss_bytes: int | None = None
    joules: dict[str, float] = field(default_factory=dict)
    all_understood: bool = True

    def add(self, name: str, rss_bytes: int | None, joules: float | None) -> None:
        """Take the figures of a step."""
        self.count += 1
        if rss_bytes is not None:
            self.max_rss_bytes = max(rss_bytes, self.max_rss_bytes or 0)
        if joules:
            self.joules[name] = joules

    def energy(self, job: Job) -> tuple[float | None, str]:
        """Return joules, and their source: the job's own if it has any.

        None when the figures of a step are lost, rather than too few.
        Nodes are metered, not processes: `batch` and `extern` run at the same time as the numbered steps, and adding
        them would count the same joules twice.
        """
        if job.energy_joules is not None or not self.joules or not self.all_understood:
            return job.energy_joules, ""
        if "extern" in self.joules:
            return self.joules["extern"], "extern"
        numbered = [joules for name, joules in self.joules.items() if name[:1].isdigit()]
        return (sum(numbered), "steps") if numbered else (max(self.joules.values()), "batch")

    def folded_into(self, job: Job) -> Job:
        """Return the job with its steps' figures."""
        joules, source = self.energy(job)
        figures = {"steps": str(self.count) if self.count else "", "energy_from": source}
        if self.max_rss_bytes is not None and self.all_understood:
            figures["max_rss_bytes"] = str(self.max_rss_bytes)
        return replace(
            job, energy_joules=joules, fields={**job.fields, **{name: text for name, text in figures.items() if text}}
        )


@dataclass
class Remarks:
    """Counts of a file's oddities."""

    report: Report
    clock: Clock
    counts: Counter[str] = field(default_factory=Counter)

    def seen(self, job: Job) -> Job:
        """Count a job that is handed out, and its oddities."""
        self.report.read += 1
        if job.started_ns is not None and job.ended_ns is not None:
            self.counts["jobs end before they start"] += job.ended_ns < job.started_ns
        if job.nodes and job.node_count is not None:
            self.counts["jobs whose node list and node count differ"] += len(job.nodes) != job.node_count
        return job

    def note(self) -> None:
        """Write the remarks into the report."""
        self.report.remark(self.counts)
        self.report.notes += self.clock.notes()
        if not self.report.read:
            self.report.notes.append("no jobs")
