"""Tuning histories from results in the T4 format of Kernel Tuner and the autotuning benchmarks."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.trial import History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.lines import plain_head, whole_object
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.imported_history import imported_history
from crosswind.ingest.readers.searches.kernel_tuner import FILE_LIMIT, LISTED_MAX, sign_of
from crosswind.ingest.readers.searches.value_domain import domain_of_values

DONE = "correct"
STATES: Mapping[object, TrialState] = {
    DONE: TrialState.DONE,
    "constraints": TrialState.INFEASIBLE,
    "compile": TrialState.FAILED,
    "runtime": TrialState.FAILED,
    "correctness": TrialState.FAILED,
    "timeout": TrialState.FAILED,
}
OWN: Mapping[object, TrialState] = {"pruned": TrialState.PRUNED}  # where `crosswind tune export` knows it better
DIRECTIONS: Mapping[object, int] = {"minimise": 1, "maximise": -1}
Result = Mapping[str, object]


@dataclass(frozen=True)
class KernelTunerT4Reader:
    """One history: the results in their order."""

    name: ClassVar[str] = "kernel_tuner_t4"
    description: ClassVar[str] = "results in Kernel Tuner's T4 format, version 1.0 (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins as a JSON object with the first result of such a file."""
        text = plain_head(head)
        return text.lstrip().startswith("{") and all(f'"{word}"' in text for word in ("configuration", "invalidity"))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """Yield the history, named after the file. Raises: MalformedError, UnavailableError.

        Source: kernel_tuner/schema/T4/1.0.0/results-schema.json, kernel_tuner/file_utils.py.
        """
        document = whole_object(path, report, limit=FILE_LIMIT)
        results = document.get("results")
        if not isinstance(results, list):
            raise MalformedError(f"{path}: results is {type(results).__name__}; expected a list")
        sound = [(place, result) for place, result in enumerate(results) if _is_sound(place, result, report)]
        if not sound:
            report.notes.append("no configuration was measured: no study")
            return
        objective, sign, unit = _objective(path, document, [result for _, result in sound])
        names = list(dict.fromkeys(name for _, result in sound for name in _configuration(result)))
        stem = path.name.removesuffix(".gz").rsplit(".", 1)[0] or "results"
        study_id = imported_id(self.name, context.system, stem, objective, names, _configuration(sound[0][1]))
        trials: list[Trial] = []
        for place, result in sound:
            try:
                trials.append(_trial(result, names, objective, sign=sign, trial_id=f"{study_id}-{len(trials):08d}"))
            except MalformedError as error:
                report.skip(0, json.dumps(result)[:200], f"result {place}: {error}")
        if not trials:
            report.notes.append("no configuration was measured: no study")
            return
        space = {
            name: domain_of_values((trial.configuration[name] for trial in trials), listed_max=LISTED_MAX)
            for name in names
        }
        if sign < 0:
            report.notes.append(f"{objective} is to be maximised: stored with the sign turned")
        named = ("-" if sign < 0 else "") + objective
        yield imported_history(Study(study_id, stem, space, named, unit, 0, 0), trials, report)


def _is_sound(place: int, result: object, report: Report) -> bool:
    configuration = result.get("configuration") if isinstance(result, dict) else None
    is_sound = isinstance(configuration, dict) and len(configuration) > 0
    if not is_sound:
        report.skip(0, str(result), f"result {place}: configuration is {configuration!r:.80}; expected an object")
    return is_sound


def _objective(path: Path, document: Mapping[str, object], results: Sequence[Result]) -> tuple[str, int, str]:
    """Return the objective, the sign that makes lower better, and the unit.

    Raises: MalformedError for results without one objective, and for a direction that is not known.
    """
    named = [result.get("objectives") for result in results if result.get("objectives")]
    listed = named[0] if named else ["time"]
    if not isinstance(listed, list) or len(listed) != 1 or not isinstance(listed[0], str):
        raise MalformedError(f"{path}: objectives is {listed!r:.80}; expected one name")
    objective: str = listed[0]
    metadata = document.get("metadata")
    direction = (
        metadata.get("direction") if isinstance(metadata, dict) else None
    )  # as `crosswind tune export` writes it
    sign = DIRECTIONS[direction] if direction in DIRECTIONS else sign_of(path, objective)
    measured = (_measurement(result, objective) for result in results)
    units = (measurement.get("unit") for measurement in measured if measurement)
    return objective, sign, next((unit for unit in units if isinstance(unit, str) and unit), "")


def _trial(result: Result, names: Sequence[str], objective: str, *, sign: int, trial_id: str) -> Trial:
    configuration = _configuration(result)
    for name in names:
        value = configuration.get(name)
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
            raise MalformedError(f"{name} is {value!r:.80}; expected a number, a text or a truth value")
    values: dict[str, Parameter] = {name: configuration[name] for name in names}  # type: ignore[misc]
    state = OWN.get(result.get("state"), STATES.get(str(result.get("invalidity"))))
    if state is None:
        raise MalformedError(
            f"invalidity is {result.get('invalidity')!r:.80}; expected one of: {', '.join(map(str, STATES))}"
        )
    if state is not TrialState.DONE:
        return Trial(values, state, None, trial_id)
    value = (_measurement(result, objective) or {}).get("value")
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not isinstance(value, int | float):
        raise MalformedError(f"measurement {objective} is {value!r:.80}; expected a number")
    return Trial(values, TrialState.DONE, sign * float(value), trial_id)


def _configuration(result: Result) -> Mapping[str, object]:
    configuration = result.get("configuration")
    return configuration if isinstance(configuration, dict) else {}


def _measurement(result: Result, name: str) -> Mapping[str, object] | None:
    """Return the measurement of this name."""
    measurements = result.get("measurements")
    listed = measurements if isinstance(measurements, list) else []
    return next((entry for entry in listed if isinstance(entry, dict) and entry.get("name") == name), None)
