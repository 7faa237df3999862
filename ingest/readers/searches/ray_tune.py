"""Tuning histories from Ray Tune's experiments: a folder with the state of all trials, and one folder a trial."""

import json
import math
import pickletools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.trial import History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.lines import plain_head, whole_object, whole_text
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.imported_history import imported_history
from crosswind.ingest.readers.searches.value_domain import domain_of_values

STATES = "experiment_state-*.json"  # one for each time that the experiment was begun or resumed; the last has all
FILE_LIMIT = 1 << 28  # bytes of text
PICKLE_LIMIT = 1 << 24
MODES = ("min", "max")
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Ended:
    """A trial as in the state of the experiment: its last result, and whether the experiment stopped it."""

    name: str
    status: str
    values: Mapping[str, Parameter]
    began: float
    result: Mapping[str, object]
    was_stopped: bool


@dataclass(frozen=True)
class RayTuneReader:
    """One history: the experiment's trials in the order in which they began."""

    name: ClassVar[str] = "ray_tune"
    description: ClassVar[str] = "folder of an experiment of Ray Tune, or its experiment_state file"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins as the state of an experiment."""
        text = plain_head(head)
        return text.lstrip().startswith("{") and '"trial_data"' in text and '"trainable_name' in text.replace("\\", "")

    def recognises_folder(self, path: Path) -> bool:
        """Return whether the folder has the state of an experiment."""
        return next(path.glob(STATES), None) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """Yield the history. Raises: MalformedError, UnavailableError.

        Source: ray/tune/execution/experiment_state.py, ray/tune/experiment/trial.py.
        """
        file = max(path.glob(STATES)) if path.is_dir() else path
        state = whole_object(file, report, limit=FILE_LIMIT)
        metric, mode = _aim(file, state)
        ended = list(_ended(file, state, report))
        if not ended:
            report.notes.append("no trial has ended: no study")
            return
        names = list(dict.fromkeys(name for trial in ended for name in trial.values))
        whole = [trial for trial in ended if _has_all(trial, names, report)]
        folder = file.resolve().parent.name
        study_id = imported_id(self.name, context.system, folder, metric, names, ended[0].name)
        trials = _trials(whole, metric, -1 if mode == "max" else 1, report)
        space = {name: domain_of_values(trial.values[name] for trial in whole) for name in names}
        if mode == "max":
            report.notes.append(f"{metric} is to be maximised: stored with the sign turned")
        named = ("-" if mode == "max" else "") + metric
        study = Study(study_id, folder, space, named, "", 0, round(min(trial.began for trial in ended)) * SECOND_NS)
        numbered = [replace(trial, trial_id=f"{study_id}-{place:08d}") for place, trial in enumerate(trials)]
        yield imported_history(study, numbered, report)


def _aim(file: Path, state: Mapping[str, object]) -> tuple[str, str]:
    """Return metric and mode. Raises: MalformedError where the experiment has none."""
    runner = state.get("runner_data")
    metric = runner.get("_metric") if isinstance(runner, dict) else None
    if not isinstance(metric, str) or not metric:
        raise MalformedError(f"{file}: metric is {metric!r:.80}; expected a name, as in TuneConfig(metric=...)")
    mode = _mode(file.with_name("tuner.pkl"))
    if mode is None:
        raise MalformedError(f"{file}: no tuner.pkl beside it says whether {metric} is to be small or large (mode)")
    return metric, mode


def _mode(path: Path) -> str | None:
    """Return the mode in a pickled Tuner, whose words are read but which is never loaded: that could run anything."""
    texts: list[object] = []
    try:
        with path.open("rb") as file:
            texts = [argument for _, argument, _ in pickletools.genops(file.read(PICKLE_LIMIT)) if argument is not None]
    except (OSError, ValueError, KeyError, IndexError, MemoryError):  # what pickletools raises for damaged data
        return None
    return next((str(value) for name, value in pairwise(texts) if name == "mode" and value in MODES), None)


def _ended(file: Path, state: Mapping[str, object], report: Report) -> Iterator[Ended]:
    """Yield the trials that ended, in the order in which they began; faulty ones go to the report."""
    entries = state.get("trial_data")
    if not isinstance(entries, list):
        raise MalformedError(f"{file}: trial_data is {type(entries).__name__}; expected a list")
    trials = []
    for place, entry in enumerate(entries):
        try:
            trials.append(_trial(file.parent, entry))
        except (ValueError, TypeError, KeyError, RecursionError, MalformedError) as error:
            report.skip(0, str(entry), f"trial {place} of the state is not understood: {error!r:.80}")
    going = sum(trial.status not in ("TERMINATED", "ERROR") for trial in trials)
    report.remark({"trials have not ended: left out": going})
    ended = [trial for trial in trials if trial.status in ("TERMINATED", "ERROR")]
    yield from sorted(ended, key=lambda trial: (trial.began, trial.name))


def _trial(folder: Path, entry: Sequence[str]) -> Ended:
    """Return a trial of its two JSON texts: what it is, and what came of it."""
    trial, outcome = (json.loads(text) for text in entry)
    result = outcome["last_result"]
    values = {str(name): _parameter(value) for name, value in trial["evaluated_params"].items()}
    began = float(outcome["start_time"] or 0.0)
    if not isinstance(result, dict) or not 0 <= began < 1e11:
        raise MalformedError(f"last_result {result!r:.40}, start_time {began}; expected an object and seconds")
    log = folder / Path(str(trial["relative_logdir"])).name / "result.json"
    return Ended(str(trial["trial_id"]), str(trial["status"]), values, began, result, _was_stopped(log))


def _parameter(value: object) -> Parameter:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return value if is_number or isinstance(value, str) else json.dumps(value)  # type: ignore[return-value]


def _was_stopped(log: Path) -> bool:
    """Return whether the last result was logged as done: Ray stopped the trial, which did not end by itself."""
    try:
        text = whole_text(log, Report(str(log), "ray_tune"), limit=FILE_LIMIT)
        last: object = json.loads(text.rstrip().rpartition("\n")[2])
    except (ValueError, RecursionError, MalformedError, UnavailableError, OSError):
        return False
    return isinstance(last, dict) and last.get("done") is True


def _has_all(trial: Ended, names: Sequence[str], report: Report) -> bool:
    lacking = [name for name in names if name not in trial.values]
    if lacking:
        report.skip(0, "", f"trial {trial.name}: has no value of {', '.join(lacking)[:200]}, which others have")
    return not lacking


def _trials(ended: Sequence[Ended], metric: str, sign: int, report: Report) -> list[Trial]:
    """Return the trials; those that were stopped after fewer iterations than the longest are pruned.

    Not those that were better than all that went on: a stopping criterion was met.
    """
    objectives = [_objective(trial, metric, sign) for trial in ended]
    longest = max((_iterations(trial) for trial in ended), default=0)
    early = [trial.was_stopped and _iterations(trial) < longest for trial in ended]
    best = min(
        (value for value, is_early in zip(objectives, early, strict=True) if value is not None and not is_early),
        default=math.inf,
    )
    counts: Counter[str] = Counter()
    trials = []
    for trial, value, is_early in zip(ended, objectives, early, strict=True):
        if trial.status == "ERROR" or value is None:
            counts["trials ended without a finite objective: failed"] += trial.status != "ERROR"
            trials.append(Trial(trial.values, TrialState.FAILED))
        elif is_early and value >= best:
            counts["trials were stopped early: pruned"] += 1
            trials.append(Trial(trial.values, TrialState.PRUNED))
        else:
            trials.append(Trial(trial.values, TrialState.DONE, value))
    report.remark(counts)
    return trials


def _objective(trial: Ended, metric: str, sign: int) -> float | None:
    value = trial.result.get(metric)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return sign * float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _iterations(trial: Ended) -> float:
    count = trial.result.get("training_iteration")
    return float(count) if isinstance(count, int | float) and math.isfinite(count) else 0.0
