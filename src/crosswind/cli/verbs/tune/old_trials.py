"""Finished trials of other tools taken over into a study: Optuna, Ray Tune, Kernel Tuner, or a table in a CSV file."""

import argparse
import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosswind.cli.text.output import say, say_json
from crosswind.client.installed_store import open_store
from crosswind.data.schema.errors import InvalidInputError, MalformedError, ProjectError, UnavailableError
from crosswind.data.schema.trial import ENDED, History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.search import folder_reader_of
from crosswind.ingest.readers.searches.optuna_url import histories_at, is_url, shown
from crosswind.models.tuner.space.space import Space
from crosswind.settings import Settings

OK = 0
ROWS_MAX = 5_000
FILES_MAX = 1_000  # of a folder
REASON_MAX = 200  # characters of why a file was not read
QUOTED = 5  # refused rows that are quoted one by one


@dataclass(frozen=True)
class Taken:
    """The trials that one file gave, why others do not fit the study, and why it could not be read at all."""

    file: str
    trials: Sequence[Trial] = ()
    refused: Sequence[str] = ()
    problem: str | None = None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.file}: nothing: {self.problem}"
        unfit = f", {len(self.refused)} not of the space" if self.refused else ""
        return f"{self.file}: {len(self.trials)} {'trial' if len(self.trials) == 1 else 'trials'}{unfit}"


def take_over(arguments: argparse.Namespace, settings: Settings, place: tuple[str, str]) -> int:
    """Puts the finished trials of a file or a folder into a study of this store; the same again changes nothing.

    Raises: InvalidInputError, NotFoundError, MalformedError, UnavailableError.
    """
    if place[0] != "store":
        raise InvalidInputError(
            f"tune import: the study is in a {place[0]}: import where its store is, or from the lake"
        )
    with open_store(settings) as store:
        with store.catalog.read() as session:
            study = session.studies.get(arguments.study)
        taken = _taken(arguments.file, study, settings.system, arguments.of)
        trials = {trial.trial_id: trial for part in taken for trial in part.trials}
        with store.catalog.write() as session:
            session.studies.merge(History(study, tuple(trials.values())))
    _say(study, len(trials), taken, arguments)
    return OK


def _taken(where: str, study: Study, system: str, of: str | None) -> list[Taken]:
    """Return what a file, an experiment or a database gave, or each file of a folder, a bad one with the reason.

    Raises: as `trials_in` for a file alone; InvalidInputError for a folder without any trial.
    """

    def take(file: Path | str, name: str) -> Taken:
        return Taken(name, *fitting(study, trials_in(str(file), study, system, of)))

    path = Path(where)
    if is_url(where) or not path.is_dir() or folder_reader_of(path):
        return [take(where, shown(where))]
    taken = [_readable(take, file, str(file.relative_to(path))) for file in _files(path)]
    if not any(part.trials or part.refused for part in taken):
        reasons = "".join(f"\n  {part}" for part in taken[:QUOTED])
        raise InvalidInputError(f"{path}: none of its {len(taken)} files has trials of {study.name}{reasons}")
    return taken


def _files(folder: Path) -> list[Path]:
    """Return the files below the folder, hidden ones left out. Raises: InvalidInputError for too many."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if len(files) > FILES_MAX:
        raise InvalidInputError(f"{folder}: {len(files)} files, expected at most {FILES_MAX}")
    return files


def _readable(take: Callable[[Path, str], Taken], file: Path, name: str) -> Taken:
    try:
        return take(file, name)
    except ProjectError as error:
        return Taken(name, problem=" ".join(str(error).split())[:REASON_MAX])


def _say(study: Study, count: int, taken: Sequence[Taken], arguments: argparse.Namespace) -> None:
    refused = [reason for part in taken for reason in part.refused]
    if arguments.json:
        files = [
            {"file": part.file, "trials": len(part.trials), "refused": len(part.refused), "problem": part.problem}
            for part in taken
        ]
        say_json({"study": study.name, "trials": count, "refused": refused, "files": files})
        return
    say(f"{count} trials taken over into {study.name}, {len(refused)} do not fit its space")
    for line in refused[:QUOTED]:
        say(f"  {line}")
    if Path(arguments.file).is_dir():
        say("\n".join(str(part) for part in taken))


def fitting(study: Study, trials: Iterable[Trial]) -> tuple[list[Trial], list[str]]:
    """Those whose configuration lies in the study's space, under ids that stay the same, and why others do not."""
    space = Space.from_json(study.space)
    kept: dict[str, Trial] = {}
    refused = []
    for number, trial in enumerate(trials):
        try:
            configuration = {
                name: trial.configuration[name] for name in study.parameter_names if name in trial.configuration
            }
            space.check(configuration)
        except (ProjectError, KeyError) as error:
            refused.append(f"trial {number}: {error}")
            continue
        identity = json.dumps([study.study_id, number, configuration, trial.objective], sort_keys=True)
        trial_id = "0" + hashlib.sha256(identity.encode()).hexdigest()[:25].upper()
        kept[trial_id] = replace(trial, configuration=configuration, trial_id=trial_id)
    return list(kept.values()), refused


def trials_in(where: str, study: Study, system: str, of: str | None) -> Iterator[Trial]:
    """The finished trials at a path or URL. Raises: MalformedError, UnavailableError, InvalidInputError."""
    path = where.removeprefix("sqlite:///")  # an SQLite file is read without Optuna
    if not is_url(path) and Path(path).suffix.lower() in {".csv", ".tsv"}:
        yield from _rows(Path(path), study)
        return
    histories = list(_histories(path, Context(system, zone_named("UTC"))))
    chosen = [history for history in histories if of is None or history.study.name.startswith(of)]
    if len(chosen) != 1:
        names = ", ".join(history.study.name for history in histories) or "none"
        raise InvalidInputError(f"{shown(path)} holds the studies {names}: --of NAME says which one is meant")
    _check_direction(chosen[0].study, study)
    for trial in chosen[0].trials:
        if trial.state in ENDED:
            yield trial


def _histories(where: str, context: Context) -> Iterator[History]:
    """The searches of a file, of a folder that is one as a whole, or of a database."""
    if is_url(where):
        yield from histories_at(where, Report(shown(where), "optuna"), context)
        return
    path = Path(where)
    reader = (folder_reader_of(path) if path.is_dir() else None) or reader_for(path)
    for record in reader.read(path, Report(where, reader.name), context):
        if isinstance(record, History):
            yield record


def _check_direction(theirs: Study, ours: Study) -> None:
    """Refuse what was maximised where the study minimises, and the reverse: readers write a minus before its name."""
    if theirs.objective.startswith("-") is not (ours.is_maximised or ours.objective.startswith("-")):
        words = ("minimised", "maximised")
        aim = words[theirs.objective.startswith("-")]
        raise InvalidInputError(
            f"{theirs.name}: {theirs.objective.removeprefix('-')} was {aim}, expected an objective that is "
            f"{words[aim == words[0]]}, as in study {ours.name}"
        )


def _rows(path: Path, study: Study) -> Iterator[Trial]:
    """One trial a row; an empty objective is a trial that failed."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            if study.objective not in (rows.fieldnames or ()):
                raise MalformedError(f"{path}: no column {study.objective}, found {', '.join(rows.fieldnames or ())}")
            for number, row in enumerate(rows):
                if number >= ROWS_MAX:
                    raise InvalidInputError(f"{path}: more than {ROWS_MAX} rows, expected fewer")
                yield _trial(path, number, row, study)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise MalformedError(f"{path}: {error}") from error


def _trial(path: Path, number: int, row: Mapping[str, str | None], study: Study) -> Trial:
    configuration = {
        name: parameter_of(row[name] or "") for name in study.parameter_names if row.get(name) not in (None, "")
    }
    text = row.get(study.objective) or ""
    if not text:
        return Trial(configuration, TrialState.FAILED)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MalformedError(f"{path}: row {number + 2}: {study.objective} is {text[:40]!r}, expected a finite number")
    return Trial(configuration, TrialState.DONE, study.signed(value))


def parameter_of(text: str) -> Parameter:
    """A cell's value: numbers and truth values as in JSON, anything else is text."""
    if text in ("True", "False"):
        return text == "True"
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) and math.isfinite(value) else text
