"""Studies opened by name, or made, wherever they are."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.verbs.tune.outbox import Outbox
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.run import new_ulid
from crosswind.settings import Settings
from crosswind.tune.studies import LEASE_SECONDS, Place, Study

if TYPE_CHECKING:
    from crosswind.data.schema import trial as schema
    from crosswind.models.tuner.service.service import StudyService
    from crosswind.tune.spaces import Form

MINIMISE, MAXIMISE = "minimise", "maximise"
DIRECTIONS = {"minimise": MINIMISE, "minimize": MINIMISE, "maximise": MAXIMISE, "maximize": MAXIMISE}
UNKNOWN = {"_": {"kind": "boolean"}}  # takes the place of parameters that will be named later
DEFAULTS = {"objective": "value"}


def study(  # noqa: PLR0913 - keywords
    name: str,
    space: object = None,
    *,
    objective: str | None = None,
    direction: str | None = None,
    trials: int | None = None,
    hours: float | None = None,
    server: str | None = None,
    folder: Path | str | None = None,
    home: Path | str | None = None,
    load_if_exists: bool = True,
    lease: float = LEASE_SECONDS,
    **fields: object,
) -> Study:
    """Return the study of this name, made if there is none: `study("lr", {"lr": (1e-5, 1e-1, "log")})`.

    Args:
        name: Shared by all who work on it.
        space: A dictionary of parameters, or a dataclass (see `crosswind.tune.spaces`). None for a study that is there;
            without one, for a study whose programs name the parameters while they run (`trial.suggest_float`).
        objective: A name for what the trials measure, or an expression of outcomes; by default `value`.
        direction: `minimise`, the default, or `maximise`.
        trials: The budget of all who share the study; None for no limit.
        hours: From the study's creation on.
        server: URL of a server; by default $CROSSWIND_SERVER.
        folder: A folder that all nodes share; by default $CROSSWIND_TUNE_FOLDER.
        home: The store of this machine; by default $CROSSWIND_HOME. Without server and folder, the study is there.
        load_if_exists: Whether a study of this name is opened; False refuses it.
        lease: Seconds for which a trial is kept for this process after its last heartbeat.
        fields: Further fields of a study file: `constraints`, `facts`, `limits`, `unit`, `seed`, `details` and others.

    Raises:
        InvalidInputError: For a space or field that is none, or two places.
        ConflictError: For a study of this name with another space, objective or direction.
        UnavailableError: When the server or the folder cannot be reached.
    """
    settings = _settings(home)
    place = _place(server, folder, home)
    wanted = {**fields, "objective": objective, "direction": direction, "budget": {"trials": trials, "hours": hours}}
    outbox, opened = Outbox.below(settings.spool, place), ExitStack()
    try:
        service = opened.enter_context(service_at(place, settings))
        if space is None and load_if_exists and (stored := _stored(service, name)):
            _expect_facts(stored, wanted)
            return Study(Place(service, outbox, opened), stored, lease_seconds=lease)
        from crosswind.tune.spaces import Form, form_of  # noqa: PLC0415 - heavy

        form = Form({"parameters": UNKNOWN}) if space is None else form_of(space)
        new = _new_study(name, form, wanted)
        if space is None:
            new = replace(new, space={"parameters": {}}, define_by_run=True)
        stored = _made_or_opened(service, new, wanted, load_if_exists=load_if_exists)
    except BaseException:
        opened.close()
        raise
    return Study(Place(service, outbox, opened), stored, make=form.make, lease_seconds=lease)


def _settings(home: Path | str | None) -> Settings:
    settings = Settings.from_environment()
    return settings if home is None else replace(settings, home=Path(home).expanduser().absolute())


def _place(server: str | None, folder: Path | str | None, home: Path | str | None) -> tuple[str, str]:
    """Return the kind and the address of the service, as the command line has them."""
    named = {"server": server, "folder": folder, "home": home}
    given = [word for word, value in named.items() if value is not None]
    if len(given) > 1:
        raise InvalidInputError(f"{given[0]} is {named[given[0]]!r}, expected none beside {given[1]}")
    path = None if folder is None else Path(folder).expanduser()
    return ("store", "") if home is not None else place_of(argparse.Namespace(server=server, folder=path))


def _new_study(name: str, form: Form, wanted: Mapping[str, object]) -> schema.Study:
    """Return the study as a study file of these fields would have it."""
    from crosswind.models.tuner.study.study_file import StudyFile  # noqa: PLC0415 - heavy

    given = {word: value for word, value in wanted.items() if value is not None}
    start = {"start": [dict(form.start)]} if form.start else {}
    return StudyFile.from_json({**DEFAULTS, **form.fields, **start, **given, "name": name}).study(
        new_ulid(), time.time_ns()
    )


def _made_or_opened(
    service: StudyService, study: schema.Study, wanted: Mapping[str, object], *, load_if_exists: bool
) -> schema.Study:
    """Make the study unless it is there; then it has to be the same search."""
    if not load_if_exists:
        return service.create(study)
    stored = _stored(service, study.name)
    if stored is None:
        try:
            return service.create(study)
        except ConflictError:  # somebody else made it just now
            stored = service.status(study.name).study
    _expect_same(stored, study, wanted)
    return stored


def _stored(service: StudyService, name: str) -> schema.Study | None:
    try:
        return service.status(name).study
    except NotFoundError:
        return None


def _expect_same(stored: schema.Study, study: schema.Study, wanted: Mapping[str, object]) -> None:
    """Refuse another search under the name of one that is there. Raises: ConflictError naming what differs."""
    if (difference := _difference(stored, study)) is not None:
        raise ConflictError(f"study {study.name!r} is there with another space: {difference}; choose another name")
    _expect_facts(stored, wanted)


def _expect_facts(stored: schema.Study, wanted: Mapping[str, object]) -> None:
    """Refuse another objective or direction than the study has. Raises: ConflictError; InvalidInputError for none."""
    if wanted["direction"] not in (None, *DIRECTIONS):
        raise InvalidInputError(f"direction is {wanted['direction']!r}, expected minimise or maximise")
    facts = {"objective": stored.objective, "direction": stored.direction or MINIMISE}
    named = {"objective": wanted["objective"], "direction": DIRECTIONS.get(str(wanted["direction"]))}
    for word, there in facts.items():
        if named[word] is not None and named[word] != there:
            raise ConflictError(
                f"study {stored.name!r} is there with {word} {there!r}, expected that, not {named[word]!r}"
            )


def _difference(stored: schema.Study, wanted: schema.Study) -> str | None:
    """Return in words the first difference of two studies' spaces, None where they are the same."""
    if stored.define_by_run or wanted.define_by_run:
        return None if stored.define_by_run is wanted.define_by_run else "of one its programs name the parameters"
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - heavy

    there, here = (Space.from_json(space).as_json() for space in (stored.space, wanted.space))
    if there == here:
        return None
    ours, theirs = (_parameters(space) for space in (here, there))
    for name in {**theirs, **ours}:
        if ours.get(name) != theirs.get(name):
            return f"{name} is {theirs.get(name, 'missing')} there, and {ours.get(name, 'missing')} here"
    return f"{ {word: there[word] for word in there if word != 'parameters'} } there"


def _parameters(space: Mapping[str, object]) -> Mapping[str, object]:
    parameters = space.get("parameters")
    is_wrapped = isinstance(parameters, Mapping) and not isinstance(parameters.get("kind"), str)
    return parameters if is_wrapped and isinstance(parameters, Mapping) else space
