"""Answers of a server over HTTP, by the standard library alone."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from crosswind import DEADLINE_SECONDS
from crosswind.client.answers import Answers
from crosswind.client.http import Server, segment
from crosswind.client.protocol import LISTED
from crosswind.data.schema import answers
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.question import (
    HOUR_SECONDS,
    HOURS_MAX,
    RANKED_RUNS,
    REGRESSION_RUNS,
    TRACED_NAMES,
    LikeRun,
    Price,
    Question,
    Scales,
)
from crosswind.data.schema.run import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from crosswind.client.cohorts import RemoteCohorts
    from crosswind.client.fleet import RemoteFleet
    from crosswind.client.own_rows import RemoteRows
    from crosswind.client.remote_studies import RemoteStudyService
    from crosswind.client.sql import RemoteSql
    from crosswind.client.tables.tables import Tables
    from crosswind.data.schema.answers.events import Event, EventFilter

PEERS_MAX = 10_000  # that a server lists at most


class Remote:
    """The `Client` of a server; also raises MalformedError where something else than Crosswind answers."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca_file: str | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._server = Server(url, token, ca_file=ca_file, deadline_seconds=deadline_seconds)
        self._answers = Answers(self._server)

    @cached_property
    def studies(self) -> RemoteStudyService:
        """The server's studies."""
        from crosswind.client.remote_studies import RemoteStudyService  # noqa: PLC0415 - 30 ms that few need

        return RemoteStudyService(self._server)

    @property
    def own(self) -> RemoteRows:
        """The acts there on rows that are one's own."""
        from crosswind.client.own_rows import RemoteRows  # noqa: PLC0415 - as above

        return RemoteRows(self._server)

    @property
    def sql(self) -> RemoteSql:
        """SQL over the rows that may be seen there."""
        from crosswind.client.sql import RemoteSql  # noqa: PLC0415 - as above

        return RemoteSql(self._server)

    @property
    def tables(self) -> Tables:
        """Whole lists there as tables."""
        try:
            from crosswind.client.tables.tables import RemoteTables  # noqa: PLC0415 - as above
        except ModuleNotFoundError as error:
            raise UnavailableError(f"tables need {error.name}: pip install 'crosswind[tables]'") from error
        return RemoteTables(self._server, self.studies.trials, self.fleet.series)

    @property
    def fleet(self) -> RemoteFleet:
        """Systems there, their nodes and stored metrics."""
        from crosswind.client.fleet import RemoteFleet  # noqa: PLC0415 - as above

        return RemoteFleet(self._answers)

    @property
    def cohorts(self) -> RemoteCohorts:
        """Saved selections of runs."""
        from crosswind.client.cohorts import RemoteCohorts  # noqa: PLC0415 - as above

        return RemoteCohorts(self._answers)

    def runs(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        state: RunState | None = None,
        id_end: str | None = None,
        limit: int = LISTED,
    ) -> tuple[answers.runs.ListedRun, ...]:
        """As GET /v1/runs."""
        query = {"workload": workload, "system": system, "state": state, "id_end": id_end}
        return self._answers.rows(answers.runs.ListedRun, "/v1/runs", query, limit)

    def run_outcomes(
        self,
        workload: str | None = None,
        system: str | None = None,
        *,
        state: RunState | None = None,
        limit: int = LISTED,
    ) -> tuple[answers.runs.RunOutcome, ...]:
        """As GET /v1/run-outcomes."""
        query = {"workload": workload, "system": system, "state": state}
        return self._answers.rows(answers.runs.RunOutcome, "/v1/run-outcomes", query, limit)

    def run_report(self, run_id: str) -> answers.runs.RunReport:
        """As GET /v1/runs/{run_id}/report."""
        return self._answers.get(answers.runs.RunReport, f"{_run(run_id)}/report")

    def jobs(
        self,
        name: str | None = None,
        system: str | None = None,
        *,
        user: str | None = None,
        state: str | None = None,
        limit: int = LISTED,
    ) -> tuple[answers.jobs.ListedJob, ...]:
        """As GET /v1/jobs."""
        query = {"name": name, "system": system, "user": user, "state": state}
        return self._answers.rows(answers.jobs.ListedJob, "/v1/jobs", query, limit)

    def job(self, job_id: str, system: str | None = None) -> answers.jobs.JobReport:
        """As GET /v1/jobs/{job_id}."""
        return self._answers.get(answers.jobs.JobReport, f"/v1/jobs/{segment(job_id)}", system=system)

    def nodes(
        self, since_seconds: int = HOUR_SECONDS, *, limit: int | None = None
    ) -> tuple[answers.nodes.NodeState, ...]:
        """As GET /v1/nodes."""
        return self._answers.rows(answers.nodes.NodeState, "/v1/nodes", {"since_seconds": since_seconds}, limit)

    def predict(
        self,
        question: Question | LikeRun,
        outcome: answers.predictions.Outcome | None = None,
        *,
        limit_seconds: float | None = None,
    ) -> answers.predictions.RunPrediction:
        """As POST /v1/predictions."""
        body = {**question.as_json(), "outcome": outcome, "limit_seconds": limit_seconds}
        return self._answers.post(answers.predictions.RunPrediction, "/v1/predictions", body)

    def advise_walltime(
        self, question: Question | LikeRun, confidence: float, *, startup_seconds: float | None = None
    ) -> answers.advice.WalltimeAdvice:
        """As POST /v1/walltime-advice."""
        body = {**question.as_json(), "confidence": confidence, "startup_seconds": startup_seconds}
        return self._answers.post(answers.advice.WalltimeAdvice, "/v1/walltime-advice", body)

    def advise_scaling(
        self, question: Question | LikeRun, scales: Scales, price: Price
    ) -> answers.advice.ScalingAdvice:
        """As POST /v1/scaling-advice."""
        body = {**question.as_json(), **asdict(scales), **asdict(price)}
        return self._answers.post(answers.advice.ScalingAdvice, "/v1/scaling-advice", body)

    def remaining(self, run_id: str, *, total_steps: int | None = None) -> answers.weather.Remaining:
        """As GET /v1/runs/{run_id}/remaining."""
        return self._answers.get(answers.weather.Remaining, f"{_run(run_id)}/remaining", total_steps=total_steps)

    def batch_shares(
        self, run_id: str, *, batch: int | None = None, now_batch: int | None = None
    ) -> answers.advice.BatchShares:
        """As GET /v1/runs/{run_id}/batch-shares."""
        return self._answers.get(
            answers.advice.BatchShares, f"{_run(run_id)}/batch-shares", batch=batch, now_batch=now_batch
        )

    def explain(self, run_id: str) -> answers.explanations.Explanation:
        """As GET /v1/runs/{run_id}/explanation."""
        return self._answers.get(answers.explanations.Explanation, f"{_run(run_id)}/explanation")

    def waits(self, run_id: str) -> answers.explanations.Waits:
        """As GET /v1/runs/{run_id}/waits."""
        return self._answers.get(answers.explanations.Waits, f"{_run(run_id)}/waits")

    def compare(self, first: str, second: str) -> answers.explanations.Comparison:
        """As GET /v1/runs/{run_id}/comparison."""
        return self._answers.get(answers.explanations.Comparison, f"{_run(first)}/comparison", **{"with": second})

    def stragglers(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        runs: int = RANKED_RUNS,
        limit: int | None = None,
    ) -> answers.stragglers.PeerRanking:
        """As GET /v1/stragglers."""
        shown = PEERS_MAX if limit is None else limit
        return self._answers.get(
            answers.stragglers.PeerRanking, "/v1/stragglers", system=system, workload=workload, runs=runs, limit=shown
        )

    def run_stragglers(self, run_id: str) -> answers.stragglers.RunStragglers:
        """As GET /v1/runs/{run_id}/stragglers."""
        return self._answers.get(answers.stragglers.RunStragglers, f"{_run(run_id)}/stragglers")

    def replay(self, run_id: str) -> answers.stragglers.RunReplay:
        """As GET /v1/runs/{run_id}/replay."""
        return self._answers.get(answers.stragglers.RunReplay, f"{_run(run_id)}/replay")

    def trace(self, run_id: str, *, top: int = TRACED_NAMES) -> answers.traces.TraceReport:
        """As GET /v1/runs/{run_id}/trace."""
        return self._answers.get(answers.traces.TraceReport, f"{_run(run_id)}/trace", top=top)

    def trace_diff(self, first: str, second: str) -> answers.trace_difference.RunsDifference:
        """As GET /v1/runs/{run_id}/trace/difference."""
        kind = answers.trace_difference.RunsDifference
        return self._answers.get(kind, f"{_run(first)}/trace/difference", **{"with": second})

    def traced_runs(self, *, limit: int = LISTED) -> tuple[answers.traces.TracedRun, ...]:
        """As GET /v1/traces."""
        return self._answers.rows(answers.traces.TracedRun, "/v1/traces", {}, limit)

    def regressions(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        runs: int = REGRESSION_RUNS,
        since_ns: int | None = None,
    ) -> answers.stragglers.Regressions:
        """As GET /v1/regressions."""
        of_runs = _of_runs(workload, system, since_ns)
        return self._answers.get(answers.stragglers.Regressions, "/v1/regressions", **of_runs, runs=runs)

    def weather(
        self, system: str | None = None, workload: str | None = None, *, hours: int = HOURS_MAX
    ) -> answers.weather.SystemWeather:
        """As GET /v1/weather."""
        return self._answers.get(
            answers.weather.SystemWeather, "/v1/weather", system=system, workload=workload, hours=hours
        )

    def counters(
        self, workload: str | None = None, system: str | None = None, *, since_ns: int | None = None
    ) -> answers.effects.CounterRanking:
        """As GET /v1/counters."""
        of_runs = _of_runs(workload, system, since_ns)
        return self._answers.get(answers.effects.CounterRanking, "/v1/counters", **of_runs)

    def interference(
        self, workload: str | None = None, system: str | None = None, *, since_ns: int | None = None
    ) -> answers.effects.Interference:
        """As GET /v1/interference."""
        return self._answers.get(
            answers.effects.Interference, "/v1/interference", **_of_runs(workload, system, since_ns)
        )

    def checks(self, system: str) -> answers.checks.SystemChecks:
        """As GET /v1/checks."""
        earlier = self._answers.rows(answers.checks.EarlierChecks, "/v1/checks", {"system": system}, None)
        return answers.checks.SystemChecks(system, earlier)

    def disturbance(self, study: str, run_id: str) -> answers.studies.Disturbance:
        """As GET /v1/studies/{study_id}/runs/{run_id}/disturbance."""
        return self._answers.get(
            answers.studies.Disturbance, f"{self.studies.path(study)}/runs/{segment(run_id)}/disturbance"
        )

    def events(
        self, wanted: EventFilter | None = None, *, after: int | None = None, follow: bool = True
    ) -> Iterator[Event]:
        """As GET /v1/events."""
        from crosswind.client.events import events_of_server  # noqa: PLC0415 - as above
        from crosswind.data.schema.answers.events import ANY_EVENT  # noqa: PLC0415

        return events_of_server(self._server, wanted or ANY_EVENT, after, follow=follow)

    def report(self, path: str, query: Mapping[str, str]) -> str:
        """Return the page at this path as one file that needs nothing else. Raises: NotFoundError."""
        with self._server.stream(f"{quote(path)}.html", query, {"Accept": "text/html"}) as answer:
            return answer.read().decode()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(run_id: str) -> str:
    return f"/v1/runs/{segment(run_id)}"


def _of_runs(workload: str | None, system: str | None, since_ns: int | None) -> dict[str, object | None]:
    since = None if since_ns is None else rfc3339(since_ns)
    return {"workload": workload, "system": system, "since": since}
