"""The start of a study: configurations that are tried first."""

from typing import TYPE_CHECKING

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Study

if TYPE_CHECKING:  # NumPy, which most looks at a study do without
    from crosswind.models.tuner.space.space import Space

START_MAX = 100  # configurations


def check_start(study: Study) -> None:
    """Refuse a start that cannot be tried; a missing parameter is refused, too.

    Raises: InvalidInputError with the configuration's place, value and expectation.
    """
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - see above

    most = min(START_MAX, study.trials_max or START_MAX)
    if len(study.start) > most:
        raise InvalidInputError(f"start has {len(study.start)} configurations, expected at most {most}")
    space, places = Space.from_json(study.space), dict[str, int]()
    for place, configuration in enumerate(study.start, 1):
        check_in(space, configuration, f"start: configuration {place}")
        first = places.setdefault(space.key(configuration), place)
        if first != place:
            raise InvalidInputError(f"start: configuration {place} repeats configuration {first}, expected it once")


def check_in(space: "Space", configuration: Configuration, what: str) -> None:
    """Refuse a configuration from elsewhere. Raises: InvalidInputError that begins with what it is."""
    try:
        space.check(configuration)
    except InvalidInputError as error:
        raise InvalidInputError(f"{what}: {error}") from error
