"""Tuning histories from Kernel Tuner's cache files."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.trial import History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.lines import plain_head, whole_text
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.imported_history import imported_history
from crosswind.ingest.readers.searches.kernel_tuner_file import Entry, cache_of
from crosswind.ingest.readers.searches.value_domain import allows, domain_of_values

FILE_LIMIT = 1 << 28  # bytes of text
LISTED_MAX = 10_000
FAILURES = {
    "InvalidConfig": TrialState.INFEASIBLE,
    "CompilationFailedConfig": TrialState.FAILED,
    "RuntimeFailedConfig": TrialState.FAILED,
}
LOWER_IS_BETTER = ("time", "energy", "cost", "loss")
HIGHER_IS_BETTER = ("fitness", "GFLOP/s", "TFLOP/s", "GB/s", "TB/s", "GFLOPS/W", "TFLOPS/W", "GFLOP/J", "TFLOP/J")
IDENTITY = ("kernel_name", "device_name", "problem_size")


@dataclass(frozen=True)
class KernelTunerReader:
    """One history: the kernel's configurations in the order in which they were measured."""

    name: ClassVar[str] = "kernel_tuner"
    description: ClassVar[str] = "Kernel Tuner's cache file, also of an interrupted run (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins as a JSON object with the keys of such a cache."""
        text = plain_head(head)
        return text.lstrip().startswith("{") and '"kernel_name"' in text and '"tune_params_keys"' in text

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """Yield the history. Raises: MalformedError, UnavailableError.

        Source: kernel_tuner/schema/cache/1.1.0/schema.json; util.objective_default_map for objectives to maximise.
        """
        header, entries = cache_of(whole_text(path, report, limit=FILE_LIMIT), path, report)
        space = _space(path, header)
        objective, sign = _objective(path, header)
        study_id = imported_id(self.name, context.system, *(header.get(key) for key in IDENTITY), objective, space)
        trials: list[Trial] = []
        for entry in entries:
            try:
                trials.append(_trial(entry, space, objective, sign=sign, trial_id=f"{study_id}-{len(trials):08d}"))
            except MalformedError as error:
                report.skip(entry.line, entry.key, str(error))
        if sign < 0:
            report.notes.append(f"{objective} is to be maximised: stored with the sign turned")
        if not trials:
            report.notes.append("no configuration was measured: no study")
            return
        unit = "ms" if objective == "time" and header.get("device_name") else ""
        named = ("-" if sign < 0 else "") + objective
        study = Study(study_id, _name(header), space, named, unit, 0, _created_ns(entries))
        yield imported_history(study, trials, report)


def _space(path: Path, header: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    names, values = header.get("tune_params_keys"), header.get("tune_params")
    if not isinstance(names, list) or not names or not isinstance(values, dict):
        raise MalformedError(f"{path}: tune_params_keys and tune_params: expected a list and an object")
    space = {}
    for name in names:
        listed = values.get(name) if isinstance(name, str) else None
        if not isinstance(listed, list) or not listed or not all(isinstance(v, str | int | float) for v in listed):
            raise MalformedError(f"{path}: tune_params {name!r:.80}: {listed!r:.80}; expected a list of scalars")
        space[name] = domain_of_values(listed, listed_max=LISTED_MAX)
    return space


def _objective(path: Path, header: Mapping[str, object]) -> tuple[str, int]:
    """Return the objective and the sign that makes lower better. Raises: MalformedError for an unknown direction."""
    objective = header.get("objective", "time")
    if isinstance(objective, list) and len(objective) == 1:  # as version 1.5 writes it
        objective = objective[0]
    return str(objective), sign_of(path, objective)


def sign_of(path: Path, objective: object) -> int:
    """Return the sign that makes lower better. Raises: MalformedError for an objective of unknown direction."""
    if not isinstance(objective, str) or objective not in LOWER_IS_BETTER + HIGHER_IS_BETTER:
        accepted = ", ".join(LOWER_IS_BETTER + HIGHER_IS_BETTER)
        raise MalformedError(f"{path}: objective {objective!r:.80} has no known direction; expected one of: {accepted}")
    return -1 if objective in HIGHER_IS_BETTER else 1


def _trial(
    entry: Entry, space: Mapping[str, Mapping[str, object]], objective: str, *, sign: int, trial_id: str
) -> Trial:
    configuration: dict[str, Parameter] = {}
    for name, domain in space.items():
        value = entry.values.get(name)
        if not isinstance(value, str | int | float) or not allows(domain, value):
            raise MalformedError(f"{name!r:.80} is {value!r:.80}; expected one of tune_params")
        configuration[name] = value
    measured = entry.values.get(objective)
    if isinstance(measured, str) and measured in FAILURES:
        return Trial(configuration, FAILURES[measured], None, trial_id)
    is_number = isinstance(measured, int | float) and not isinstance(measured, bool) and math.isfinite(measured)
    if not is_number or not isinstance(measured, int | float):
        raise MalformedError(f"{objective} is {measured!r:.80}; expected a number or one of: {', '.join(FAILURES)}")
    return Trial(configuration, TrialState.DONE, sign * float(measured), trial_id)


def _name(header: Mapping[str, object]) -> str:
    size = header.get("problem_size")
    parts = [header.get("kernel_name"), header.get("device_name")]
    parts.append("x".join(map(str, size)) if isinstance(size, list) else size)
    return re.sub(r"[^\w.+-]+", "_", "-".join(str(part) for part in parts if part)) or "kernel"


def _created_ns(entries: list[Entry]) -> int:
    """Return the time of the first measurement; 0 in caches without times."""
    return next((entry.measured_ns for entry in entries if entry.measured_ns), 0)
