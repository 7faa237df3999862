"""The protocol of every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from crosswind.data.schema.question import HOUR_SECONDS, HOURS_MAX, RANKED_RUNS, REGRESSION_RUNS, TRACED_NAMES

if TYPE_CHECKING:  # 70 ms that a verb does not need
    from collections.abc import Iterator
    from types import TracebackType

    from crosswind.client.cohorts import Cohorts
    from crosswind.client.fleet import Fleet
    from crosswind.client.own_rows import OwnRows
    from crosswind.client.sql import Sql
    from crosswind.client.tables.tables import Tables
    from crosswind.data.schema.answers.advice import BatchShares, ScalingAdvice, WalltimeAdvice
    from crosswind.data.schema.answers.checks import SystemChecks
    from crosswind.data.schema.answers.effects import CounterRanking, Interference
    from crosswind.data.schema.answers.events import Event, EventFilter
    from crosswind.data.schema.answers.explanations import Comparison, Explanation, Waits
    from crosswind.data.schema.answers.jobs import JobReport, ListedJob
    from crosswind.data.schema.answers.nodes import NodeState
    from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
    from crosswind.data.schema.answers.runs import ListedRun, RunOutcome, RunReport
    from crosswind.data.schema.answers.stragglers import PeerRanking, Regressions, RunReplay, RunStragglers
    from crosswind.data.schema.answers.studies import Disturbance
    from crosswind.data.schema.answers.trace_difference import RunsDifference
    from crosswind.data.schema.answers.traces import TracedRun, TraceReport
    from crosswind.data.schema.answers.weather import Remaining, SystemWeather
    from crosswind.data.schema.question import LikeRun, Price, Question, Scales
    from crosswind.data.schema.run import RunState
    from crosswind.models.tuner.service.service import StudyService

LISTED = 20  # rows of a list, unless more are asked for


class Client(Protocol):
    """Answers about runs, their systems and studies; a context manager that gives back what it holds open.

    Every method raises InvalidInputError for a question that cannot be asked, NotFoundError for a run, system or study
    that is not stored, and UnavailableError where the answer cannot be had now.
    """

    @property
    def studies(self) -> StudyService:
        """The service that hands out the trials of studies."""
        ...

    @property
    def own(self) -> OwnRows:
        """The acts on rows that are one's own."""
        ...

    @property
    def sql(self) -> Sql:
        """SQL over the rows that may be seen."""
        ...

    @property
    def tables(self) -> Tables:
        """Whole lists as tables in Arrow or pandas."""
        ...

    @property
    def fleet(self) -> Fleet:
        """The questions about systems, their nodes and stored metrics."""
        ...

    @property
    def cohorts(self) -> Cohorts:
        """Saved selections of runs."""
        ...

    def runs(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        state: RunState | None = None,
        id_end: str | None = None,
        limit: int = LISTED,
    ) -> tuple[ListedRun, ...]:
        """The newest runs, the newest first; `id_end` is the end of their ids."""
        ...

    def run_outcomes(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        state: RunState | None = None,
        limit: int = LISTED,
    ) -> tuple[RunOutcome, ...]:
        """The newest runs and the times of their steps, the newest first."""
        ...

    def run_report(self, run_id: str) -> RunReport:
        """One run: its outcome, ranks, latecomers and energy."""
        ...

    def jobs(
        self,
        name: str | None = None,
        system: str | None = None,
        *,
        user: str | None = None,
        state: str | None = None,
        limit: int = LISTED,
    ) -> tuple[ListedJob, ...]:
        """The newest scheduler jobs, the newest first; `state` is the scheduler's word, such as TIMEOUT."""
        ...

    def job(self, job_id: str, system: str | None = None) -> JobReport:
        """One job: its time limit, time, efficiency, energy and runs with their verdicts; None: the only system."""
        ...

    def nodes(self, since_seconds: int = HOUR_SECONDS, *, limit: int | None = None) -> tuple[NodeState, ...]:
        """Nodes with samples of the last so many seconds, and the state of their agents, by name; None: all."""
        ...

    def predict(
        self, question: Question | LikeRun, outcome: Outcome | None = None, *, limit_seconds: float | None = None
    ) -> RunPrediction:
        """The distribution of a run's outcome; None: the finest outcome that was recorded.

        Here and below, `LikeRun(run_id, system=..., world_size=...)` is a run like a stored one but for what is given.
        """
        ...

    def advise_walltime(
        self, question: Question | LikeRun, confidence: float, *, startup_seconds: float | None = None
    ) -> WalltimeAdvice:
        """The shortest time limit that the run keeps with this confidence; start-up is measured where not given."""
        ...

    def advise_scaling(self, question: Question | LikeRun, scales: Scales, price: Price) -> ScalingAdvice:
        """Time, efficiency and price of the same work over numbers of nodes, and how many to request."""
        ...

    def remaining(self, run_id: str, *, total_steps: int | None = None) -> Remaining:
        """The rest of a run in progress; None: as many steps as its parameters or its cohort's runs have."""
        ...

    def batch_shares(self, run_id: str, *, batch: int | None = None, now_batch: int | None = None) -> BatchShares:
        """Samples for each rank so that all finish together; None: as many as now, and now as its parameters say."""
        ...

    def explain(self, run_id: str) -> Explanation:
        """Why a run took as long as it did."""
        ...

    def waits(self, run_id: str) -> Waits:
        """The waits of a run: which of its ranks waited for which."""
        ...

    def compare(self, first: str, second: str) -> Comparison:
        """By what one of two runs took longer than the other."""
        ...

    def stragglers(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        runs: int = RANKED_RUNS,
        limit: int | None = None,
    ) -> PeerRanking:
        """Nodes, devices and rank places by how surely they are slower than their peers; None: of all."""
        ...

    def run_stragglers(self, run_id: str) -> RunStragglers:
        """The ranks that one run waited for, from its steps so far."""
        ...

    def replay(self, run_id: str) -> RunReplay:
        """The slowdown of one run over itself with equal ranks, and the ranks and stages that make it."""
        ...

    def trace(self, run_id: str, *, top: int = TRACED_NAMES) -> TraceReport:
        """The report of a run's stored traces, with so many kernels and operators."""
        ...

    def trace_diff(self, first: str, second: str) -> RunsDifference:
        """By what the steps of the second run differ from those of the first, by traces or the probe's records."""
        ...

    def traced_runs(self, *, limit: int = LISTED) -> tuple[TracedRun, ...]:
        """The runs that have traces, the newest first."""
        ...

    def regressions(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        runs: int = REGRESSION_RUNS,
        since_ns: int | None = None,
    ) -> Regressions:
        """Lasting changes of workloads' times, and what changed with them; None: of all; of runs since a time."""
        ...

    def weather(
        self, system: str | None = None, workload: str | None = None, *, hours: int = HOURS_MAX
    ) -> SystemWeather:
        """The slowdown of a system's workloads now and hour by hour; None: the system of most runs."""
        ...

    def counters(
        self, workload: str | None = None, system: str | None = None, *, since_ns: int | None = None
    ) -> CounterRanking:
        """Counters by how surely they go with slow runs; None: of all workloads, of the system of most runs.

        since_ns: of runs that began then or later.
        """
        ...

    def interference(
        self, workload: str | None = None, system: str | None = None, *, since_ns: int | None = None
    ) -> Interference:
        """Neighbours by how surely they go with slow runs; None: as for counters."""
        ...

    def checks(self, system: str) -> SystemChecks:
        """The newest measurements of a system's nodes before their jobs."""
        ...

    def disturbance(self, study: str, run_id: str) -> Disturbance:
        """The disturbance of a trial's run by external causes."""
        ...

    def events(
        self, wanted: EventFilter | None = None, *, after: int | None = None, follow: bool = True
    ) -> Iterator[Event]:
        """Events in the order of storing, as they come, without an end, also across breaks of the connection.

        Without `after`, an event's id, from now on. Without `follow` those that are stored: after an id, or all that
        are kept.
        """
        ...

    def close(self) -> None:
        """Gives back what it holds open."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
