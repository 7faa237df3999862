"""The definition of a study, and where another one of the same name differs from it."""

import json
from typing import TYPE_CHECKING

from crosswind.data.schema.trial import Study

if TYPE_CHECKING:  # NumPy, which most looks at a study do without
    from crosswind.models.tuner.space.space import Space

APART = frozenset({"study_id", "name", "created_ns", "details", "space", "trials_max", "state"})
TRIALS, HOURS = "budget of trials", "budget of hours"


def difference(stored: Study, wanted: Study) -> str:
    """Return the first field in which the stored study is another one, with both values; empty where it is the same.

    A budget that has been extended since is the same.
    """
    ours, theirs = _definition(wanted), _definition(stored)
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = (json.dumps(definition.get(name), sort_keys=True) for definition in (ours, theirs))
        if mine != other and not _is_extended(name, ours.get(name), theirs.get(name)):
            return f"{name} is {other:.200}, not {mine:.200}"
    return ""


def _definition(study: Study) -> dict[str, object]:
    """Return everything that makes a study what it is, by names that people know."""
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - see above

    fields, space = study.as_json(), Space.from_json(study.space)
    own = {name: value for name, value in fields.items() if name not in APART}
    details = {name: value for name, value in fields["details"].items() if name != "hours"}
    requirements = space.requirements
    return {
        **details,
        **own,
        **{f"parameter {name}": [domain.as_json(), _condition(space, name)] for name, domain in space.domains.items()},
        "constraints": [constraint.text for constraint in requirements.constraints],
        "facts": dict(requirements.facts),
        "transformer": dict(requirements.transformer),
        TRIALS: study.trials_max,
        HOURS: study.hours,
    }


def _condition(space: "Space", name: str) -> str:
    condition = space.requirements.conditions.get(name)
    return condition.text if condition else ""


def _is_extended(name: str, wanted: object, stored: object) -> bool:
    """Return whether it is a budget that has become larger."""
    if name not in (TRIALS, HOURS):
        return False
    return isinstance(wanted, int | float) and isinstance(stored, int | float) and stored > wanted
