"""Sources that the caller of a sampler gives: names of studies, or searches that another package keeps."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.evidence.agreement import features_of
from crosswind.models.tuner.evidence.prior_studies import FAILED, SOURCES_MAX, telling
from crosswind.models.tuner.search.source import Source
from crosswind.settings import Settings


@dataclass(frozen=True)
class Place:
    """The place of named studies, as `crosswind tune` has it: a server, a shared folder, or the store of this machine.

    Args:
        server: URL; by default $CROSSWIND_SERVER.
        folder: Shared folder; by default $CROSSWIND_TUNE_FOLDER.
    """

    server: str | None = None
    folder: Path | str | None = None

    def sources(self, names: Sequence[str], *, is_maximised: bool) -> list[Source]:
        """Return the studies of these names as sources.

        Raises: NotFoundError; InvalidInputError for a study of the other direction, or one without an ended trial;
        UnavailableError.
        """
        if not names:
            return []
        folder = Path(self.folder) if self.folder else None
        place = place_of(argparse.Namespace(server=self.server, folder=folder))
        with service_at(place, Settings.from_environment()) as service:
            return [_source(service.status(name).study, service.trials(name), is_maximised) for name in names]


def bounded(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the first sources, as many as a search uses, and of each the rows that say most."""
    return tuple(telling(source) for source in islice(sources, SOURCES_MAX))


def source_of(name: str, trials: Iterable[Trial], features: dict[str, float | str] | None = None) -> Source:
    """Return ended trials as a source. Raises: InvalidInputError where none has an objective."""
    ended = [trial for trial in trials if trial.state is TrialState.DONE or trial.state in FAILED]
    if all(trial.objective is None for trial in ended):
        raise InvalidInputError(f"source {name} has no trial with an objective, expected at least one")
    objectives = [trial.objective for trial in ended]
    return Source(name, [trial.configuration for trial in ended], objectives, features or {})


def check_direction(name: str, *, is_maximised: bool, expected: bool) -> None:
    """Refuse a source of the other direction. Raises: InvalidInputError."""
    words = {True: "maximised", False: "minimised"}
    if is_maximised is not expected:
        raise InvalidInputError(f"source {name} is {words[is_maximised]}, expected one that is {words[expected]}")


def _source(study: Study, records: Sequence[TrialRecord], expected: bool) -> Source:
    """Return a study of ours; readers of other tools' files write a minus before what these maximised."""
    is_maximised = study.is_maximised or study.objective.startswith("-")
    check_direction(study.name, is_maximised=is_maximised, expected=expected)
    return source_of(f"study {study.name}", [record.trial for record in records], features_of(study))
