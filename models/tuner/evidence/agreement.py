"""Agreement of another study with the one that looks for sources: by program first, then by what else is alike.

Names of parameters alone make no source. Studies agree if both name the same workload, or, where not both name one, if
their commands are of the same program. Where neither can be compared, the objective, every parameter with half of its
values, facts and constraints must agree, and something that tells programs apart: the study's name but for a number at
its end, or an entry of `details` beyond workload, place and scale.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Self

from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study
from crosswind.models.tuner.evidence.overlap import differing, missing_in
from crosswind.models.tuner.evidence.program import Program, program_of
from crosswind.models.tuner.space.space import Space

NAMES_MAX = 3  # of parameters in a reason
NUMBERED = re.compile(r"(?i)[\W_]*(?:v|run|try)?[\W_]*\d+$")  # the end of `ddp-2`, `ddp_v3`
NO_TELLING = frozenset({"template"})  # details that studies of any program share

Features = Mapping[str, float | str]


class Grounds(IntEnum):
    """The grounds on which a study is a source, the surest first."""

    NAMED = 0
    WORKLOAD = 1
    COMMAND = 2
    SPACE = 3


@dataclass(frozen=True)
class Profile:
    """A study as it is compared with others: with its program, and the description of its place."""

    study: Study
    workload: str | None
    program: Program | None
    features: Features = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, run: Run | None = None, systems: Mapping[str, Features] | None = None) -> Self:
        """Return the profile of a study; its newest run says what the study does not, `systems` describes systems."""
        features = {**(_run_features(run) if run else {}), **features_of(study)}
        described = (systems or {}).get(str(features.get("system", "")), {})
        workload = features.get("workload")
        program = program_of(study.command or (run.command if run else ()))
        return cls(study, None if workload is None else str(workload), program, {**described, **features})


@dataclass(frozen=True)
class Agreement:
    """The verdict on one study: the grounds on which it is a source, None if it is none, and the reason in words."""

    grounds: Grounds | None
    reason: str
    distance: tuple[int, float] = (0, 0.0)

    @property
    def order(self) -> tuple[int, int, float]:
        """The place among the sources, the nearest first: by grounds, place and scale."""
        return (self.grounds if self.grounds is not None else len(Grounds), *self.distance)


def features_of(study: Study) -> dict[str, float | str]:
    """Return the study's description of the place where it is measured, for the likeness of sources."""
    sizes = {"world_size": study.world_size, "node_count": study.node_count}
    texts = {"workload": study.workload, "system": study.system}
    return {
        **{name: text for name, text in texts.items() if text is not None},
        **{name: float(size) for name, size in sizes.items() if size is not None},
    }


def agreement_of(own: Profile, other: Profile) -> Agreement | None:
    """Return whether the other study is a source of this one, and why; None if it has nothing to do with it.

    Raises: InvalidInputError for a space that is none.
    """
    space, theirs = Space.from_json(own.study.space), Space.from_json(other.study.space)
    missing = missing_in(theirs, space)
    if missing:
        if len(missing) == len(space.domains) and not is_named(own.study, other.study):
            return None
        reason = f"{len(missing)} of {len(space.domains)} parameters missing: {_some(missing)}"
        return Agreement(None, reason, (len(missing), 0.0))
    if is_named(own.study, other.study):
        place = min((own.study.sources or ()).index(name) for name in _names(own.study, other.study))
        return Agreement(Grounds.NAMED, f"named{_other_aim(own.study, other.study)}", (place, 0.0))
    if (other.study.objective, other.study.direction) != (own.study.objective, own.study.direction):
        return Agreement(None, f"another objective: {other.study.direction or ''} {other.study.objective}".strip())
    return _of_program(own, other) or _of_space(own, other, differing(space, theirs))


def is_named(study: Study, other: Study) -> bool:
    """Return whether the study names the other one among its sources."""
    return bool(_names(study, other))


def _names(study: Study, other: Study) -> set[str]:
    return {other.name, other.study_id} & set(study.sources or ())


def place_words(features: Features) -> str:
    """Return where something was measured: `system B at 16 ranks`; empty where nothing is known."""
    system, ranks, nodes = (features.get(name) for name in ("system", "world_size", "node_count"))
    scale = f"at {ranks:g} ranks" if isinstance(ranks, float) else f"on {nodes:g} nodes" if nodes is not None else ""
    return " ".join(word for word in (f"system {system}" if system else "", scale) if word)


def _run_features(run: Run) -> dict[str, float | str]:
    ranks = {} if run.world_size is None else {"world_size": float(run.world_size)}
    return {"workload": run.workload, "system": run.system, **ranks}


def _of_program(own: Profile, other: Profile) -> Agreement | None:
    """Return the verdict by workload, else by command; None where these cannot be compared."""
    if own.workload is not None and other.workload is not None:
        if own.workload == other.workload:
            return Agreement(Grounds.WORKLOAD, "same workload", _distance(own, other))
        return Agreement(None, f"another workload: {other.workload}")
    if own.program is None or other.program is None:
        return None
    if own.program.is_like(other.program):
        return Agreement(Grounds.COMMAND, "same command", _distance(own, other))
    is_same_name = own.program.name == other.program.name
    return Agreement(None, f"another command: {other.program.name}{' with other options' if is_same_name else ''}")


def _of_space(own: Profile, other: Profile, differences: list[str]) -> Agreement:
    """Return the verdict where nothing says whether the program is the same."""
    unknown = "no workload or command in common"
    if differences:
        return Agreement(None, f"{unknown}, and other values of {_some(differences)}")
    shared = _shared(own.study, other.study)
    if not shared:
        return Agreement(None, f"{unknown}: only the space is alike")
    return Agreement(Grounds.SPACE, f"same objective, values and {shared}", _distance(own, other))


def _shared(study: Study, other: Study) -> str:
    """Return what tells programs apart and is the same in both studies; empty if nothing is."""
    if NUMBERED.sub("", study.name).lower() == NUMBERED.sub("", other.name).lower():
        return "name"
    names = (name for name, value in study.details.items() if value not in (None, "") and name not in NO_TELLING)
    return next((name for name in names if other.details.get(name) == study.details[name]), "")


def _distance(own: Profile, other: Profile) -> tuple[int, float]:
    """Return how many texts of both descriptions differ, and the sum of the factors between numbers, as logarithms."""
    pairs = [(own.features[name], other.features[name]) for name in own.features.keys() & other.features.keys()]
    numbers = [(a, b) for a, b in pairs if isinstance(a, float) and isinstance(b, float) and a > 0 and b > 0]
    return sum(a != b for a, b in pairs if isinstance(a, str)), sum(abs(math.log(a / b)) for a, b in numbers)


def _other_aim(study: Study, other: Study) -> str:
    is_same = (study.objective, study.direction) == (other.objective, other.direction)
    return "" if is_same else f", for another objective: {other.objective}"


def _some(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
