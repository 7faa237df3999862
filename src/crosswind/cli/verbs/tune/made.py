"""Studies made, and the finished trials of others taken over: create, import."""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from crosswind.cli.text.output import say, say_json
from crosswind.cli.verbs.tune.source_words import source_text
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import ConflictError, InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Study, sources_from_json, unit_of_objective
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

OK = 0
OBJECTIVE = "step_p50_seconds"


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action."""
    place = place_of(arguments)
    if arguments.action == "import":
        from crosswind.cli.verbs.tune.old_trials import take_over  # noqa: PLC0415 - needs the store

        return take_over(arguments, settings, place)
    study = _study_of_space(arguments) if arguments.space else _study_of_file(arguments)
    given = {"search": arguments.search, "stop": arguments.stop}
    study = replace(study, **{name: word for name, word in given.items() if word is not None})
    with service_at(place, settings) as service:
        _create(arguments, service, study)
    return OK


def _create(arguments: argparse.Namespace, service: StudyService, study: Study) -> None:
    try:
        made, is_new = service.create(study), True
    except ConflictError:
        if not arguments.if_absent:
            raise
        made, is_new = _expect_same(service.status(study.name).study, study), False
    sources = service.status(made.name).sources
    if arguments.json:
        say_json({**made.as_json(), "sources": sources.as_json()})
        return
    say(source_text(made, sources))
    exists = "is" if is_new else "exists already, as"
    say(f"study {made.name} {exists} {made.study_id}; next: crosswind tune exec {made.name} -- CMD")


def _expect_same(stored: Study, wanted: Study) -> Study:
    """Return the stored study. Raises: ConflictError with the first field in which it is not the wanted one."""
    from crosswind.models.tuner.study.definition import difference  # noqa: PLC0415 - models are heavy to import

    if differs := difference(stored, wanted):
        raise ConflictError(f"study {stored.name!r} exists with another definition: {differs}")
    return stored


def _study_of_space(arguments: argparse.Namespace) -> Study:
    """A study of that name over a space that stands in a file alone."""
    objective = arguments.objective or OBJECTIVE
    return Study(
        study_id=new_ulid(),
        name=arguments.study,
        space=_read_space(arguments.space),
        objective=objective,
        unit=unit_of_objective(objective) if arguments.unit is None else arguments.unit,
        seed=arguments.seed,
        created_ns=time.time_ns(),
        trials_max=arguments.trials,
        sources=_sources(arguments),
    )


def _study_of_file(arguments: argparse.Namespace) -> Study:
    """The study that a file describes. Raises: InvalidInputError, MalformedError, UnavailableError."""
    from crosswind.models.tuner.study.study_file import StudyFile  # noqa: PLC0415 - models are heavy to import

    study = StudyFile.read(Path(arguments.study)).study(new_ulid(), time.time_ns())
    if arguments.sources is not None:
        study = replace(study, sources=_sources(arguments))
    return study if arguments.trials is None else replace(study, trials_max=arguments.trials)


def _sources(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    """The sources of `--sources auto|none|NAME,...`. Raises: InvalidInputError."""
    word = arguments.sources or "auto"
    return sources_from_json(word if word in ("auto", "none") else [name.strip() for name in word.split(",")])


def _read_space(path: Path) -> dict[str, object]:
    try:
        space = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise MalformedError(f"{path}: expected JSON: {error}") from error
    if not isinstance(space, dict):
        raise InvalidInputError(f"{path}: expected an object of parameters, found {type(space).__name__}")
    return space
