"""Answers of a server over HTTP, by the standard library alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from crosswind.client.decoding import decode
from crosswind.client.http import Server, segment
from crosswind.client.protocol import HOUR_SECONDS, LISTED
from crosswind.data.schema import answers
from crosswind.data.schema.question import HOURS_MAX, RANKED_RUNS, REGRESSION_RUNS, LikeRun, Price, Question, Scales
from crosswind.data.schema.run import RunState

if TYPE_CHECKING:
    from crosswind.client.own_rows import RemoteRows
    from crosswind.client.remote_studies import RemoteStudyService
    from crosswind.client.sql import RemoteSql

ROWS_MAX = 500  # of one part of a list
PEERS_MAX = 10_000  # that a server lists at most
T = TypeVar("T")


class Remote:
    """The `Client` of a server; also raises MalformedError where something else than Crosswind answers."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._server = Server(url, token)
        self._token = token

    @cached_property
    def studies(self) -> RemoteStudyService:
        """The server's studies."""
        from crosswind.client.remote_studies import RemoteStudyService  # noqa: PLC0415 - 30 ms that few need

        return RemoteStudyService(self._server.url, token=self._token)

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
        return self._list(answers.runs.ListedRun, "/v1/runs", query, limit)

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
        return self._list(answers.runs.RunOutcome, "/v1/run-outcomes", query, limit)

    def run_report(self, run_id: str) -> answers.runs.RunReport:
        """As GET /v1/runs/{run_id}/report."""
        return self._get(answers.runs.RunReport, f"{_run(run_id)}/report")

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
        return self._list(answers.jobs.ListedJob, "/v1/jobs", query, limit)

    def job(self, job_id: str, system: str | None = None) -> answers.jobs.JobReport:
        """As GET /v1/jobs/{job_id}."""
        return self._get(answers.jobs.JobReport, f"/v1/jobs/{segment(job_id)}", system=system)

    def nodes(
        self, since_seconds: int = HOUR_SECONDS, *, limit: int | None = None
    ) -> tuple[answers.nodes.NodeState, ...]:
        """As GET /v1/nodes."""
        return self._list(answers.nodes.NodeState, "/v1/nodes", {"since_seconds": since_seconds}, limit)

    def predict(
        self,
        question: Question | LikeRun,
        outcome: answers.predictions.Outcome | None = None,
        *,
        limit_seconds: float | None = None,
    ) -> answers.predictions.RunPrediction:
        """As POST /v1/predictions."""
        body = {**question.as_json(), "outcome": outcome, "limit_seconds": limit_seconds}
        return self._post(answers.predictions.RunPrediction, "/v1/predictions", body)

    def advise_walltime(
        self, question: Question | LikeRun, confidence: float, *, startup_seconds: float | None = None
    ) -> answers.advice.WalltimeAdvice:
        """As POST /v1/walltime-advice."""
        body = {**question.as_json(), "confidence": confidence, "startup_seconds": startup_seconds}
        return self._post(answers.advice.WalltimeAdvice, "/v1/walltime-advice", body)

    def advise_scaling(
        self, question: Question | LikeRun, scales: Scales, price: Price
    ) -> answers.advice.ScalingAdvice:
        """As POST /v1/scaling-advice."""
        body = {**question.as_json(), **asdict(scales), **asdict(price)}
        return self._post(answers.advice.ScalingAdvice, "/v1/scaling-advice", body)

    def remaining(self, run_id: str, *, total_steps: int | None = None) -> answers.weather.Remaining:
        """As GET /v1/runs/{run_id}/remaining."""
        return self._get(answers.weather.Remaining, f"{_run(run_id)}/remaining", total_steps=total_steps)

    def batch_shares(
        self, run_id: str, *, batch: int | None = None, now_batch: int | None = None
    ) -> answers.advice.BatchShares:
        """As GET /v1/runs/{run_id}/batch-shares."""
        return self._get(answers.advice.BatchShares, f"{_run(run_id)}/batch-shares", batch=batch, now_batch=now_batch)

    def explain(self, run_id: str) -> answers.explanations.Explanation:
        """As GET /v1/runs/{run_id}/explanation."""
        return self._get(answers.explanations.Explanation, f"{_run(run_id)}/explanation")

    def waits(self, run_id: str) -> answers.explanations.Waits:
        """As GET /v1/runs/{run_id}/waits."""
        return self._get(answers.explanations.Waits, f"{_run(run_id)}/waits")

    def compare(self, first: str, second: str) -> answers.explanations.Comparison:
        """As GET /v1/runs/{run_id}/comparison."""
        return self._get(answers.explanations.Comparison, f"{_run(first)}/comparison", **{"with": second})

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
        return self._get(
            answers.stragglers.PeerRanking, "/v1/stragglers", system=system, workload=workload, runs=runs, limit=shown
        )

    def run_stragglers(self, run_id: str) -> answers.stragglers.RunStragglers:
        """As GET /v1/runs/{run_id}/stragglers."""
        return self._get(answers.stragglers.RunStragglers, f"{_run(run_id)}/stragglers")

    def replay(self, run_id: str) -> answers.stragglers.RunReplay:
        """As GET /v1/runs/{run_id}/replay."""
        return self._get(answers.stragglers.RunReplay, f"{_run(run_id)}/replay")

    def regressions(
        self, system: str | None = None, workload: str | None = None, *, runs: int = REGRESSION_RUNS
    ) -> answers.stragglers.Regressions:
        """As GET /v1/regressions."""
        return self._get(answers.stragglers.Regressions, "/v1/regressions", system=system, workload=workload, runs=runs)

    def weather(
        self, system: str | None = None, workload: str | None = None, *, hours: int = HOURS_MAX
    ) -> answers.weather.SystemWeather:
        """As GET /v1/weather."""
        return self._get(answers.weather.SystemWeather, "/v1/weather", system=system, workload=workload, hours=hours)

    def counters(self, workload: str | None = None, system: str | None = None) -> answers.effects.CounterRanking:
        """As GET /v1/counters."""
        return self._get(answers.effects.CounterRanking, "/v1/counters", workload=workload, system=system)

    def interference(self, workload: str | None = None, system: str | None = None) -> answers.effects.Interference:
        """As GET /v1/interference."""
        return self._get(answers.effects.Interference, "/v1/interference", workload=workload, system=system)

    def checks(self, system: str) -> answers.checks.SystemChecks:
        """As GET /v1/checks."""
        return self._get(answers.checks.SystemChecks, "/v1/checks", system=system)

    def disturbance(self, study: str, run_id: str) -> answers.studies.Disturbance:
        """As GET /v1/studies/{study_id}/runs/{run_id}/disturbance."""
        return self._get(answers.studies.Disturbance, f"{self.studies.path(study)}/runs/{segment(run_id)}/disturbance")

    def close(self) -> None:
        """Nothing to give back: every request has a connection of its own."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, kind: type[T], path: str, **query: object | None) -> T:
        return self._decoded(kind, self._server.get(path, query))

    def _list(self, kind: type[T], path: str, query: Mapping[str, object], limit: int | None) -> tuple[T, ...]:
        """Return the first rows of a list, None for all, part by part."""
        rows: list[T] = []
        cursor: object = None
        while limit is None or len(rows) < limit:
            left = ROWS_MAX if limit is None else min(ROWS_MAX, limit - len(rows))
            part = self._server.get(path, {**query, "limit": left, "cursor": cursor})
            rows += self._rows(kind, part)
            if (cursor := part.get("next")) is None:
                break
        return tuple(rows)

    def _rows(self, kind: type[T], part: Mapping[str, Any]) -> list[T]:
        """Return the rows of a part of a list: its only field that is one."""
        lists = [value for value in part.values() if isinstance(value, list)]
        if len(lists) != 1:
            raise self._server.malformed(ValueError(f"{', '.join(part)}, expected one list"))
        return [self._decoded(kind, row) for row in lists[0]]

    def _post(self, kind: type[T], path: str, body: Mapping[str, Any]) -> T:
        return self._decoded(kind, self._server.post(path, body))

    def _decoded(self, kind: type[T], said: Mapping[str, Any]) -> T:
        try:
            return decode(kind, said)
        except ValueError as error:
            raise self._server.malformed(error) from error


def _run(run_id: str) -> str:
    return f"/v1/runs/{segment(run_id)}"
