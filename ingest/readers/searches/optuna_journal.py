"""Tuning histories from Optuna's journal of JournalFileBackend: one operation a line."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.searches.optuna_history import GOING, OWN_STATE, StoredStudy, StoredTrial, history_of

Operation = Mapping[str, object]
FRACTION = re.compile(r"\.[0-9]+")
METRIC_NAMES = "study:metric_names"


@dataclass(frozen=True)
class OptunaJournalReader:
    """One history per study with one objective."""

    name: ClassVar[str] = "optuna_journal"
    description: ClassVar[str] = "Optuna's journal file, one operation a line (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is an operation of a worker."""
        first = plain_head(head).split("\n", 1)[0]
        return first.startswith("{") and '"op_code"' in first and '"worker_id"' in first

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """Yield the studies in the order in which they were created. Raises: UnavailableError, MalformedError.

        Source: optuna/storages/journal/_storage.py, JournalOperation.
        """
        journal = _Journal(Clock(context.zone))
        for number, text in numbered_lines(path, report):
            try:
                journal.take(number, text)
            except MalformedError as error:
                report.skip(number, text, str(error))
        for study in journal.studies.values():
            history = history_of(study, report, context)
            if history is not None:
                yield history


@dataclass
class _Journal:
    """The state after the operations: ids are given in their order, refused operations change nothing."""

    clock: Clock
    studies: dict[int, StoredStudy] = field(default_factory=dict)
    trials: dict[int, StoredTrial] = field(default_factory=dict)
    made: int = 0

    def take(self, number: int, text: str) -> None:
        """Take one operation. Raises: MalformedError."""
        try:
            operation = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"no JSON: {error}") from error
        if not isinstance(operation, dict) or not isinstance(operation.get("op_code"), int):
            raise MalformedError("no operation: expected an object with an op_code")
        act: Mapping[int, Callable[[Operation, int], None]] = {
            0: self._create_study,
            1: self._delete_study,
            3: self._name_metrics,
            4: self._create_trial,
            5: self._set_parameter,
            6: self._end,
        }
        if operation["op_code"] in act:  # the others have nothing for a history
            act[operation["op_code"]](operation, number)

    def _create_study(self, operation: Operation, _number: int) -> None:
        name, directions = operation.get("study_name"), operation.get("directions")
        if not isinstance(name, str) or not isinstance(directions, list):
            raise MalformedError("expected study_name and directions")
        if all(study.name != name for study in self.studies.values()):
            self.studies[self.made] = StoredStudy(name, directions)
            self.made += 1

    def _delete_study(self, operation: Operation, _number: int) -> None:
        self.studies.pop(_whole(operation, "study_id"), None)

    def _name_metrics(self, operation: Operation, _number: int) -> None:
        study, attributes = self.studies.get(_whole(operation, "study_id")), operation.get("system_attr")
        if study is not None and isinstance(attributes, dict) and METRIC_NAMES in attributes:
            study.metric_names = attributes[METRIC_NAMES]

    def _create_trial(self, operation: Operation, number: int) -> None:
        study = self.studies.get(_whole(operation, "study_id"))
        if study is None:
            return
        trial = StoredTrial(len(study.trials), _whole(operation, "state") if "state" in operation else GOING[0], number)
        parameters, distributions = operation.get("params", {}), operation.get("distributions", {})
        if not isinstance(parameters, dict) or not isinstance(distributions, dict):
            raise MalformedError("params and distributions: expected objects")
        trial.parameters |= parameters
        trial.distributions |= {name: str(text) for name, text in distributions.items()}
        trial.values = _values(operation)
        own = operation.get("user_attrs")
        trial.is_infeasible = isinstance(own, dict) and own.get(OWN_STATE) == "infeasible"
        began = time_of(self.clock, operation.get("datetime_start"))
        study.created_ns = min(at_ns for at_ns in (study.created_ns, began) if at_ns) if began else study.created_ns
        self.trials[len(self.trials)] = trial
        study.trials.append(trial)

    def _set_parameter(self, operation: Operation, _number: int) -> None:
        trial, name = self.trials.get(_whole(operation, "trial_id")), operation.get("param_name")
        if trial is not None and isinstance(name, str) and trial.state in GOING:
            trial.parameters[name] = operation.get("param_value_internal")
            trial.distributions[name] = str(operation.get("distribution"))

    def _end(self, operation: Operation, number: int) -> None:
        trial = self.trials.get(_whole(operation, "trial_id"))
        if trial is not None and trial.state in GOING:
            trial.state, trial.line = _whole(operation, "state"), number
            trial.values = _values(operation) or trial.values


def time_of(clock: Clock, text: object) -> int | None:
    """Return a time of Optuna's: local in its relational storages, with a zone in journals; whole seconds."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return clock.nanoseconds("datetime_start", FRACTION.sub("", text).replace(" ", "T", 1))
    except MalformedError:
        return None


def _values(operation: Operation) -> list[object]:
    """Return the values of the objectives; some versions write a single one as `value`."""
    values, value = operation.get("values"), operation.get("value")
    return values if isinstance(values, list) else [] if value is None else [value]


def _whole(operation: Operation, name: str) -> int:
    value = operation.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedError(f"{name} is {value!r:.40}; expected a whole number")
    return value
