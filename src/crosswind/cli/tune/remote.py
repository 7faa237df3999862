"""The service of a server, over HTTP, by the standard library alone."""

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crosswind.data.schema.errors import (
    ConflictError,
    InvalidInputError,
    MalformedError,
    NotFoundError,
    UnavailableError,
)
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.ingest.ship.client import Answer, Client
from crosswind.ingest.ship.token import ship_token
from crosswind.models.tuner.service.service import Lease, StudyStatus

if TYPE_CHECKING:
    from crosswind.models.tuner.evidence.disturbance import Disturbance

UNKNOWN, CONFLICT, TOO_MANY, SERVER_FAULT = 404, 409, 429, 500
ANSWER_BYTES = 64 * 1024 * 1024  # the trials of the largest study
AGAIN_SECONDS = (0.1, 0.5)  # between attempts to get any answer at all


class RemoteStudyService:
    """A server's studies and trials; errors are those of a local service, UnavailableError when it does not answer."""

    def __init__(self, server: str, *, token: str | None = None) -> None:
        self._server = server.rstrip("/")
        self._token = token or ship_token()

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study, under an id of the server's choice."""
        body = {name: value for name, value in study.as_json().items() if value is not None and value != {}}
        del body["study_id"], body["created_ns"]
        return _study(self._post("/v1/studies", body, request or _new_request()))

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
        asked = {"count": count, **_lease(lease), **_given(job=lease.job, context=context)}
        return _trials(self._post(f"{self._path(study)}/trials:suggest", asked, request or _new_request()))

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Lets the lease run anew from now."""
        return _record(self._post(f"{self._path(study, trial_id)}:heartbeat", _lease(lease)))

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Gives a trial back unmeasured, with the checkpoint to go on from."""
        return _record(self._post(f"{self._path(study, trial_id)}:release", _given(owner=owner, checkpoint=checkpoint)))

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
        return _record(self._post(f"{self._path(study, trial_id)}:complete", {"objective": objective, **facts}))

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> TrialRecord:
        """Ends a trial without an objective."""
        facts = {"reason": reason, "state": str(state), **_given(owner=owner)}
        return _record(self._post(f"{self._path(study, trial_id)}:fail", facts))

    def trials(self, study: str) -> list[TrialRecord]:
        """The study's trials, oldest first."""
        return _trials(self._get(f"{self._path(study)}/trials"))

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """One trial."""
        return _record(self._get(self._path(study, trial_id)))

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""
        said = self._get(self._path(study))
        try:
            counts = {TrialState(state): int(count) for state, count in dict(said["trials"]).items()}
        except (KeyError, TypeError, ValueError) as error:
            raise _strange(error) from error
        limited = {name: said[name] for name in ("outside", "unjudged", "ends_ns") if name in said}
        front = tuple(map(_record, said.get("front") or ()))
        return StudyStatus(_study(said), counts, front, **limited, is_over=bool(said.get("is_exhausted")))

    def best(self, study: str) -> Trial | None:
        """The complete trial of the smallest objective; None before the first one."""
        best = self.status(study).best
        return best.trial if best else None

    def disturbance(self, study: str, run_id: str) -> "Disturbance":
        """Return the disturbance of a run of the study from outside; NotFoundError while the server has no such run."""
        said = self._get(f"{self._path(study)}/runs/{quote(run_id, safe='')}/disturbance")
        from crosswind.models.tuner.evidence.disturbance import Basis, Disturbance, Lost  # noqa: PLC0415 - for `exec` alone

        try:
            lost = tuple(Lost(**loss) for loss in said["lost"])
            return Disturbance(**{**said, "basis": Basis(said["basis"]), "lost": lost})
        except (KeyError, TypeError, ValueError) as error:
            raise _strange(error) from error

    def _path(self, study: str, trial_id: str | None = None) -> str:
        path = f"/v1/studies/{quote(self._id_of(study) if '/' in study else study, safe='')}"
        return path if trial_id is None else f"{path}/trials/{quote(trial_id, safe='')}"

    def _id_of(self, study: str) -> str:
        """The id of a study whose name no path can hold: servers take %2F for the end of a name."""
        for listed in self._get("/v1/studies").get("studies", ()):
            if listed.get("name") == study:
                return str(listed["study_id"])
        raise NotFoundError(f"{self._server}: study {study[:60]!r} is not in the catalog")

    def _get(self, path: str) -> Mapping[str, Any]:
        return self._said(self._answer(lambda client: client.get(path)))

    def _post(self, path: str, asked: Mapping[str, Any], request: RequestKey | None = None) -> Mapping[str, Any]:
        """Return what the server says; with a request's name, asking again for want of an answer repeats nothing."""
        try:
            content = json.dumps(asked, allow_nan=False).encode()
        except ValueError as error:
            raise InvalidInputError(f"{path}: expected finite numbers: {error}") from error
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": request.key} if request else {})
        return self._said(self._answer(lambda client: client.post(path, content, headers)))

    def _answer(self, ask: Callable[[Client], Answer]) -> Answer:
        """Return what is answered; what got lost on the way is asked again, which changes nothing twice."""
        for wait_seconds in AGAIN_SECONDS:
            try:
                return self._asked(ask)
            except UnavailableError:
                time.sleep(wait_seconds)
        return self._asked(ask)

    def _asked(self, ask: Callable[[Client], Answer]) -> Answer:
        with closing(Client(self._server, self._token, answer_bytes=ANSWER_BYTES)) as client:
            return ask(client)

    def _said(self, answer: Answer) -> Mapping[str, Any]:
        if answer.status in (200, 201):
            if answer.said:
                return answer.said
            kind = answer.media_type
            raise MalformedError(f"{self._server}: answered {kind}, expected a JSON object; is this its address?")
        detail = f"{self._server}: {answer.said.get('detail') or f'status {answer.status}'}"
        if answer.status >= SERVER_FAULT or answer.status == TOO_MANY:
            raise UnavailableError(detail)
        refusal = {UNKNOWN: NotFoundError, CONFLICT: ConflictError}.get(answer.status, InvalidInputError)
        raise refusal(detail)


def _new_request() -> RequestKey:
    """A name of its own; what is asked for, the server takes down itself."""
    return RequestKey(os.urandom(16).hex(), "")


def _lease(lease: Lease) -> dict[str, Any]:
    return {"owner": lease.owner, "lease_seconds": lease.seconds}


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _trials(said: Mapping[str, Any]) -> list[TrialRecord]:
    try:
        return [_record(trial) for trial in said["trials"]]
    except (KeyError, TypeError) as error:
        raise _strange(error) from error


def _record(said: Mapping[str, Any]) -> TrialRecord:
    try:
        return TrialRecord.from_json(said)
    except (KeyError, TypeError, ValueError) as error:
        raise _strange(error) from error


def _study(said: Mapping[str, Any]) -> Study:
    try:
        return Study.from_json(said)
    except (KeyError, TypeError, ValueError, InvalidInputError) as error:
        raise _strange(error) from error


def _strange(error: Exception) -> MalformedError:
    return MalformedError(f"the server's answer is not that of a service: {error!r}")
