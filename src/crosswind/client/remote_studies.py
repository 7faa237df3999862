"""The service of a server, over HTTP, by the standard library alone."""

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from crosswind.client.http import Server
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import (
    InvalidInputError,
    MalformedError,
    NotFoundError,
)
from crosswind.data.schema.report import Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.service.service import Lease, StudyStatus


class RemoteStudyService:
    """A server's studies and trials; errors are those of a local service, UnavailableError when it does not answer."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study, under an id of the server's choice."""
        body = {name: value for name, value in study.as_json().items() if value is not None and value != {}}
        del body["study_id"], body["created_ns"], body["state"]
        return _study(self._post("/v1/studies", body, request))

    def suggest(
        self,
        study: str,
        count: int,
        lease: Lease,
        *,
        request: RequestKey | None = None,
        context: Mapping[str, float] | None = None,
    ) -> list[TrialRecord]:
        """Up to `count` trials, chosen by `context` if there is one; none once the budget or the space is used up."""
        body = {"count": count, **_lease(lease), **_given(job=lease.job, context=context)}
        return _trials(self._post(f"{self.path(study)}/trials:suggest", body, request))

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Renews the lease from now."""
        return _record(self._post(f"{self.path(study, trial_id)}:heartbeat", _lease(lease)))

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Gives a trial back unmeasured, with the checkpoint to go on from."""
        return _record(self._post(f"{self.path(study, trial_id)}:release", _given(owner=owner, checkpoint=checkpoint)))

    def complete(  # noqa: PLR0913 - as every service has it
        self,
        study: str,
        trial_id: str,
        objective: float,
        *,
        owner: str | None = None,
        run_id: str | None = None,
        outcomes: Mapping[str, float] | None = None,
    ) -> TrialRecord:
        """Takes what was measured; the same value again changes nothing."""
        for name, value in {"objective": objective, **(outcomes or {})}.items():
            if not math.isfinite(value):
                raise InvalidInputError(f"{name} is {value}, expected a finite number")
        facts = _given(owner=owner, run_id=run_id, outcomes=dict(outcomes) if outcomes else None)
        return _record(self._post(f"{self.path(study, trial_id)}:complete", {"objective": objective, **facts}))

    def fail(  # noqa: PLR0913 - as every service has it
        self,
        study: str,
        trial_id: str,
        reason: str,
        *,
        state: TrialState = TrialState.FAILED,
        owner: str | None = None,
        charged: bool = True,
    ) -> TrialRecord:
        """Ends a trial without an objective."""
        facts = {"reason": reason, "state": str(state), **_given(owner=owner, charged=None if charged else False)}
        return _record(self._post(f"{self.path(study, trial_id)}:fail", facts))

    def define(
        self,
        study: str,
        trial_id: str,
        configuration: Configuration,
        parameters: Mapping[str, Mapping[str, object]],
        *,
        owner: str | None = None,
    ) -> TrialRecord:
        """Stores the values that a trial's program asked for, and their parameters."""
        body = {"configuration": dict(configuration), "parameters": dict(parameters), **_given(owner=owner)}
        return _record(self._post(f"{self.path(study, trial_id)}:define", body))

    def report(self, study: str, trial_id: str, reports: Sequence[Report], *, owner: str | None = None) -> str:
        """Takes intermediate values; says in words why the trial should stop."""
        body = {"reports": [report.as_json() for report in reports], **_given(owner=owner)}
        return str(self._post(f"{self.path(study, trial_id)}:report", body).get("reason") or "")

    def reports(self, study: str) -> dict[str, list[Report]]:
        """Returns the reports of each trial."""
        by_trial: dict[str, list[Report]] = {}
        try:
            for one in self._server.rows(f"{self.path(study)}/reports", "reports"):
                by_trial.setdefault(one["trial_id"], []).append(Report.from_json(one))
        except (KeyError, TypeError, InvalidInputError) as error:
            raise _malformed(error) from error
        return by_trial

    def enqueue(
        self, study: str, configurations: Sequence[Configuration], *, request: RequestKey | None = None
    ) -> list[TrialRecord]:
        """Stores trials that wait for an owner."""
        body = {"configurations": [dict(configuration) for configuration in configurations]}
        return _trials(self._post(f"{self.path(study)}/trials:enqueue", body, request))

    def retry(self, study: str, trial_id: str, *, request: RequestKey | None = None) -> TrialRecord:
        """Enqueues the configuration of a trial that ended without an objective."""
        return _record(self._post(f"{self.path(study, trial_id)}:retry", {}, request))

    def extend(
        self, study: str, *, trials: int | None = None, hours: float | None = None, request: RequestKey | None = None
    ) -> Study:
        """Adds to the budget."""
        body = _given(trials=trials, hours=hours)
        return _study(self._post(f"{self.path(study)}:extend", body, request))

    def pause(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hands out no trial until the study goes on."""
        return _study(self._post(f"{self.path(study)}:pause", {}, request))

    def resume(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hands out trials again."""
        return _study(self._post(f"{self.path(study)}:resume", {}, request))

    def stop(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hands out no more trials."""
        return _study(self._post(f"{self.path(study)}:stop", {}, request))

    def rename(self, study: str, name: str, *, force: bool = False, request: RequestKey | None = None) -> Study:
        """Gives the study another name."""
        body = {"name": name, "force": force}
        return _study(self._post(f"{self.path(study)}:rename", body, request))

    def delete(self, study: str, *, force: bool = False, request: RequestKey | None = None) -> None:
        """Removes the study with its trials."""
        self._post(f"{self.path(study)}:delete", {"force": force}, request)

    def studies(self) -> list[StudyStatus]:
        """Return how far every study is, the newest first."""
        try:
            return [_status(study) for study in self._server.rows("/v1/studies:status", "studies")]
        except (KeyError, TypeError) as error:
            raise _malformed(error) from error

    def trials(self, study: str) -> list[TrialRecord]:
        """The study's trials, oldest first."""
        return _trials({"trials": [*self._server.rows(f"{self.path(study)}/trials", "trials")]})

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """One trial."""
        return _record(self._server.get(self.path(study, trial_id)))

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""
        return _status(self._server.get(self.path(study)))

    def best(self, study: str) -> Trial | None:
        """The complete trial of the smallest objective; None before the first one."""
        best = self.status(study).best
        return best.trial if best else None

    def path(self, study: str, trial_id: str | None = None) -> str:
        """The path of a study, or of one of its trials."""
        path = f"/v1/studies/{quote(self._id_of(study) if '/' in study else study, safe='')}"
        return path if trial_id is None else f"{path}/trials/{quote(trial_id, safe='')}"

    def _id_of(self, study: str) -> str:
        """The id of a study whose name no path can hold: servers take %2F for the end of a name."""
        for listed in self._server.rows("/v1/studies", "studies"):
            if listed.get("name") == study:
                return str(listed["study_id"])
        raise NotFoundError(f"{self._server.url}: study {study[:60]!r} is not in the catalog")

    def _post(self, path: str, body: Mapping[str, Any], request: RequestKey | None = None) -> Mapping[str, Any]:
        """The server's answer, the first one where the request is sent again."""
        return self._server.post(path, body, key=request.key if request else None)


def _lease(lease: Lease) -> dict[str, Any]:
    return {"owner": lease.owner, "lease_seconds": lease.seconds}


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _trials(said: Mapping[str, Any]) -> list[TrialRecord]:
    try:
        return [_record(trial) for trial in said["trials"]]
    except (KeyError, TypeError) as error:
        raise _malformed(error) from error


def _record(said: Mapping[str, Any]) -> TrialRecord:
    try:
        return TrialRecord.from_json(said)
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(error) from error


def _status(said: Mapping[str, Any]) -> StudyStatus:
    try:
        counts = {TrialState(state): int(count) for state, count in dict(said["trials"]).items()}
        sources = StudySources.from_json(said["sources"]) if "sources" in said else StudySources()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(error) from error
    limited = {name: said[name] for name in ("outside", "unjudged", "ends_ns", "uncharged") if name in said}
    front = tuple(map(_record, said.get("front") or ()))
    is_over, enough = bool(said.get("is_exhausted")), str(said.get("enough") or "")
    return StudyStatus(_study(said), counts, front, **limited, is_over=is_over, enough=enough, sources=sources)


def _study(said: Mapping[str, Any]) -> Study:
    try:
        return Study.from_json(said)
    except (KeyError, TypeError, ValueError, InvalidInputError) as error:
        raise _malformed(error) from error


def _malformed(error: Exception) -> MalformedError:
    return MalformedError(f"the server's answer is not that of a service: {error!r}")
