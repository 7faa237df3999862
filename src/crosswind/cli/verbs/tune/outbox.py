"""Reports that no service took: kept in files, sent by the next call that reaches the service."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crosswind.cli.verbs.tune.spooled import spool_text
from crosswind.cli.verbs.tune.trial_table import as_measured
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.service.service import StudyService

FOLDER = "tune-outbox"
REFUSED = "refused"


@dataclass(frozen=True)
class TrialResult:
    """A report on a trial's end; `state` None gives it back, with the checkpoint to go on from.

    `configuration` and `parameters` are what the program of a define-by-run study asked for.
    An objective that is `as_measured` is larger-is-better in a study that maximises; the service's is negated then.
    """

    study: str
    trial_id: str
    state: TrialState | None
    objective: float | None = None
    reason: str | None = None
    owner: str | None = None
    run_id: str | None = None
    checkpoint: str | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)
    as_measured: bool = False
    configuration: Configuration | None = None
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    charged: bool = True

    def to(self, service: StudyService) -> TrialRecord:
        """Tells a service; again changes nothing. Return the trial, its objective as it was measured.

        Raises: what the service raises.
        """
        if self.configuration is not None:
            service.define(self.study, self.trial_id, self.configuration, self.parameters, owner=self.owner)
        if self.state is None:
            return service.release(self.study, self.trial_id, owner=self.owner, checkpoint=self.checkpoint)
        if self.objective is None:
            return service.fail(
                self.study,
                self.trial_id,
                self.reason or "failed",
                state=self.state,
                owner=self.owner,
                charged=self.charged,
            )
        study = service.status(self.study).study
        kept = study.signed(self.objective) if self.as_measured else self.objective
        try:
            record = service.complete(
                self.study, self.trial_id, kept, owner=self.owner, run_id=self.run_id, outcomes=self.outcomes or None
            )
        except ConflictError as error:
            raise _as_people_see(error, study, service.trial(self.study, self.trial_id), kept) from error
        return as_measured(study, [record])[0]


@dataclass(frozen=True)
class Outbox:
    """The tells that wait in a spool for one service; a file appears whole, and goes once the service has it."""

    folder: Path
    place: tuple[str, str]

    @classmethod
    def below(cls, spool: Path, place: tuple[str, str]) -> "Outbox":
        """Those of this spool."""
        return cls(spool / FOLDER, place)

    def keep(self, result: TrialResult) -> Path:
        """Keeps a tell for later, safely on disk. Raises: UnavailableError when the disk does not take it."""
        content = json.dumps({"place": self.place, "tell": asdict(result)})
        try:
            return spool_text(self.folder, content)
        except OSError as error:
            raise UnavailableError(f"{self.folder}: {error.strerror}: the trial is not reported: {content}") from error

    def send(self, service: StudyService) -> list[str]:
        """Tells what waits for this service, oldest first; what the service refuses is put aside.

        Says what was refused. Raises: UnavailableError when the service does not answer; the rest waits on.
        """
        problems = []
        for path, result in self._waiting():
            try:
                result.to(service)
            except (ConflictError, NotFoundError, InvalidInputError) as error:
                problems.append(f"{error}: kept in {_put_aside(path)}")
            else:
                path.unlink(missing_ok=True)
        return problems

    def _waiting(self) -> Iterator[tuple[Path, TrialResult]]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                is_ours = tuple(content["place"]) == self.place
                result = _decoded(content["tell"])
            except FileNotFoundError:  # somebody else tells it just now
                continue
            except (OSError, ValueError, KeyError, TypeError):
                _put_aside(path)
                continue
            if is_ours:
                yield path, result


def _as_people_see(error: ConflictError, study: Study, record: TrialRecord, sent: float) -> ConflictError:
    """Return the service's refusal, which names objectives as they are kept, with objectives as they were measured."""
    done = record.trial.objective
    if not study.is_maximised or done is None or done == sent:
        return error
    return ConflictError(
        f"trial {record.trial_id} is done with objective {study.signed(done)}, "
        f"expected that again, not {study.signed(sent)}"
    )


def _decoded(value: Mapping[str, Any]) -> TrialResult:
    state = value["state"]
    return TrialResult(**{**value, "state": None if state is None else TrialState(state)})


def _put_aside(path: Path) -> Path:
    """Return where a file now lies that nobody will send."""
    aside = path.parent / REFUSED / path.name
    aside.parent.mkdir(exist_ok=True)
    path.replace(aside)
    return aside
