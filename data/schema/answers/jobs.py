"""Scheduler jobs: what they requested, what they used, and the verdicts on their runs."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.energy import MeasuredEnergy
from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.answers.fields import about, fill_texts, text_of
from crosswind.data.schema.run import RunState


@dataclass(frozen=True, kw_only=True)
class ListedJob:
    """One allocation as the scheduler accounts for it."""

    system: str
    job_id: str
    name: str
    user: str | None
    account: str | None
    partition: str | None
    state: str
    exit_code: int | None
    signal: int | None
    nodes: tuple[str, ...]
    node_count: int | None
    cpu_count: int | None
    submitted_at: str | None = field(default=None, metadata=text_of("submitted_ns"))
    submitted_ns: int | None
    started_at: str | None = field(default=None, metadata=text_of("started_ns"))
    started_ns: int | None
    ended_at: str | None = field(default=None, metadata=text_of("ended_ns"))
    ended_ns: int | None
    elapsed_seconds: float | None
    energy_joules: float | None
    limit_seconds: float | None = field(
        default=None, metadata=about("the time limit; null where the accounts do not say or it is endless")
    )

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True, kw_only=True)
class JobRun:
    """One run of a job, and the verdict on it."""

    run_id: str
    workload: str
    state: RunState
    run_seconds: float | None
    step_p50_seconds: float | None
    verdict: Verdict
    cause: str | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class JobReport:
    """One job on one page; ratios are null where one of their two numbers is not known."""

    job: ListedJob
    queued_seconds: float | None = field(metadata=about("from submission to start"))
    used_seconds: float | None = field(metadata=about("until now, if it runs"))
    limit_ratio: float | None = field(metadata=about("time used / time limit"))
    cpu_seconds: float | None = field(metadata=about("processor time, as the scheduler accounts for it"))
    cpu_ratio: float | None = field(metadata=about("of the processor time that it held"))
    peak_memory_bytes: int | None = field(metadata=about("of the largest task of a job step"))
    run_ratio: float | None = field(metadata=about("share of the time used in which one of its runs ran"))
    energy: MeasuredEnergy | None
    run_count: int
    runs: tuple[JobRun, ...] = field(metadata=about("the newest ones, oldest first"))
