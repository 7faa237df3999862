"""Configurations, trials and studies: the words of the tuner, and their form in JSON.

A study and a trial have one flat form in JSON: that of the catalog's rows, of `/v1` and of files. Facts without a key
there are packed into `details`, `reason` and `outcomes`; only `from_json` and `as_json` know how.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from crosswind.data.schema.context import outcomes_with, reason_with, split_outcomes, split_reason
from crosswind.data.schema.errors import InvalidInputError

TRIALS_MAX = 5_000  # of a study; the tuner answers within seconds up to there, and others wait for it
HOURS_MAX = 100 * 366 * 24.0
HOUR_NS = 3600 * 1_000_000_000
REPEATS_MAX = 0.5
MAXIMISE = "maximise"
SEARCHES = ("portfolio", "gp", "tpe", "cma", "random", "grid")
STOP_AUTO = "auto"
UNITS = {"seconds": "s", "joules": "J", "watts": "W", "bytes": "B", "hertz": "Hz", "celsius": "°C"}

Parameter = int | float | str | bool
Configuration = Mapping[str, Parameter]


class TrialState(StrEnum):
    """The state of a trial."""

    WAITING = "waiting"
    LEASED = "leased"
    RELEASED = "released"
    DONE = "done"
    PRUNED = "pruned"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


class StudyState(StrEnum):
    """The state of a study: paused or stopped it hands out no trial; whoever asks waits, or ends."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


ENDED = frozenset({TrialState.DONE, TrialState.PRUNED, TrialState.INFEASIBLE, TrialState.FAILED})


@dataclass(frozen=True)
class Trial:
    """One configuration, evaluated or being evaluated.

    Args:
        configuration: Values of the space's parameters that apply.
        state: WAITING, LEASED and RELEASED are open; the others are ends.
        objective: Lower is better: negated where the study maximises, see `Study.signed`; None unless DONE.
        trial_id: Unique among all studies; empty outside of them.
        context: Numbers that describe the input for which the configuration was chosen, by name; empty without one.
    """

    configuration: Configuration
    state: TrialState = TrialState.WAITING
    objective: float | None = None
    trial_id: str = ""
    context: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """One search over a space of configurations.

    Args:
        study_id: Unique among studies.
        name: As unique, for people.
        space: The space as JSON values, which `Space.from_json` reads.
        objective: An outcome, or an expression of outcomes and parameters; the first one of several.
        unit: The objective's unit.
        seed: Of everything random in the search.
        created_ns: Nanoseconds since 1970, UTC.
        trials_max: The budget: no more trials are begun; None for no limit.
        direction: `maximise` where larger is better: services keep the objective negated then. Else smaller is better.
        objectives: All objectives as `Objective.parse` reads them, where there are several to trade off.
        limits: Bounds of outcomes as `Limit.parse` reads them, such as `power_watts <= 300`.
        hours: From the creation on; no trial is leased later. None for no limit.
        repeats: Share of the trials that may measure a close rival again, up to REPEATS_MAX.
        command: Words of the program that evaluates a trial, with `{parameter}`.
        workload: Name of the program; studies of other workloads are no prior studies.
        system: Name of the cluster on which it runs.
        world_size: Ranks of a run.
        node_count: Nodes of a run.
        stop_early: The rule by which trials end early that report intermediate values; None for the default.
        define_by_run: Whether programs name the parameters while they run: the space grows.
        sources: Names or ids of the only studies that it learns from, () for none; None: what suits it.
        start: Configurations to try first, in this order.
        search: The name of the search, one of SEARCHES; None for the usual one.
        stop: STOP_AUTO to begin no trial that is expected to gain less than the noise; None to use up the budget.
        state: Whether it hands out trials.
        details: The rest that was written down about the search, as JSON values; nothing here is interpreted.

    Raises:
        InvalidInputError: For hours or repeats out of bounds.

    Example:
        >>> space = {"threads": {"kind": "int", "low": 1, "high": 8}}
        >>> Study("s1", "threads", space, "step_p50_seconds", "s", 0, 0, hours=2).ends_ns
        7200000000000
    """

    study_id: str
    name: str
    space: Mapping[str, object]
    objective: str
    unit: str
    seed: int
    created_ns: int
    trials_max: int | None = None
    direction: str | None = None
    objectives: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    hours: float | None = None
    repeats: float | None = None
    command: tuple[str, ...] = ()
    workload: str | None = None
    system: str | None = None
    world_size: float | None = None
    node_count: float | None = None
    stop_early: str | None = None
    define_by_run: bool = False
    sources: tuple[str, ...] | None = None
    start: tuple[Configuration, ...] = ()
    search: str | None = None
    stop: str | None = None
    state: StudyState = StudyState.RUNNING
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_positive("hours", self.hours, HOURS_MAX)
        _check_positive("repeats", self.repeats, REPEATS_MAX)
        _check_word("search", self.search, SEARCHES)
        _check_word("stop", self.stop, (STOP_AUTO,))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Return the study that `as_json` wrote; further keys are ignored.

        Raises: KeyError for a key that is missing; InvalidInputError that names word, value and expectation.
        """
        details = dict(fields.get("details") or {})
        typed = {word: details.pop(word) for word, is_fit in _DETAILS.items() if is_fit(details.get(word))}
        typed |= {word: _texts(word, typed[word]) for word in _LISTS if word in typed}
        typed |= {"sources": sources_from_json(typed["sources"])} if "sources" in typed else {}
        typed |= {"start": _configurations(typed["start"])} if "start" in typed else {}
        return cls(
            study_id=fields["study_id"],
            name=fields["name"],
            space=fields["space"],
            objective=fields["objective"],
            unit=fields["unit"],
            seed=fields["seed"],
            created_ns=fields["created_ns"],
            trials_max=fields.get("trials_max"),
            state=StudyState(fields.get("state", StudyState.RUNNING)),
            **typed,
            details=details,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the study as plain JSON values, its facts without a key of their own among `details`."""
        facts: dict[str, object] = {
            "direction": self.direction,
            "objectives": list(self.objectives),
            "limits": list(self.limits),
            "hours": self.hours,
            "repeats": self.repeats,
            "command": list(self.command),
            "workload": self.workload,
            "system": self.system,
            "world_size": self.world_size,
            "node_count": self.node_count,
            "stop_early": self.stop_early,
            "define_by_run": self.define_by_run or None,
            "sources": "none" if self.sources == () else None if self.sources is None else list(self.sources),
            "start": [dict(configuration) for configuration in self.start],
            "search": self.search,
            "stop": self.stop,
        }
        return {
            "study_id": self.study_id,
            "name": self.name,
            "space": dict(self.space),
            "objective": self.objective,
            "unit": self.unit,
            "seed": self.seed,
            "created_ns": self.created_ns,
            "trials_max": self.trials_max,
            "state": self.state,
            "details": {**self.details, **{word: value for word, value in facts.items() if value not in (None, [])}},
        }

    @property
    def is_maximised(self) -> bool:
        """Return whether larger is better: services keep the objective negated then."""
        return self.direction == MAXIMISE

    def signed(self, objective: float) -> float:
        """Return an objective as it was measured from one as services keep it, or the other way round.

        Services keep it so that lower is better: negated where the study maximises. Whatever people read or write, and
        only that, passes through here.
        """
        return -objective if self.is_maximised else objective

    @property
    def parameter_names(self) -> list[str]:
        """The names of the space's parameters."""
        parameters = self.space["parameters"] if is_wrapped(self.space) else self.space
        return list(parameters) if isinstance(parameters, Mapping) else []

    @property
    def ends_ns(self) -> int | None:
        """Return when the hours since the study's creation are over; None without a limit."""
        return None if self.hours is None else self.created_ns + round(float(self.hours) * HOUR_NS)

    def is_over(self, now_ns: int) -> bool:
        """Return whether the hours are over."""
        return self.ends_ns is not None and now_ns >= self.ends_ns


@dataclass(frozen=True)
class TrialRecord:
    """A trial with its lease, as a service keeps it.

    Args:
        trial: The configuration and what came of it.
        study_id: The trial's study.
        owner: Who holds the lease, or held it last.
        lease_expires_ns: Until then the owner may evaluate it, on the server's clock; None once the lease has ended.
        run_id: The run that measured it.
        reason: Why it has no objective.
        job: The owner's batch job.
        checkpoint: Where the work of an earlier holder can be resumed.
        outcomes: The numbers that were measured besides the objective, by name.
        losses: How often a lease of it ran out without a word.
        weights: When it was suggested, the trust in each source by name and, last, in the study's own model (`own`),
            which sum to 1; empty without sources.
        charged: Counts for the budget: not what was imported, nor what ended by no fault of its configuration.
    """

    trial: Trial
    study_id: str
    owner: str | None = None
    lease_expires_ns: int | None = None
    run_id: str | None = None
    reason: str | None = None
    job: str | None = None
    checkpoint: str | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)
    losses: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    charged: bool = True

    @property
    def trial_id(self) -> str:
        """The trial's id."""
        return self.trial.trial_id

    @property
    def is_void(self) -> bool:
        """Return whether it says nothing about its configuration: it ended for another reason, unmeasured.

        A trial that was imported, which nobody ever held, says what its state says.
        """
        return not self.charged and self.owner is not None and self.trial.state in ENDED - {TrialState.DONE}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Return the record that `as_json` wrote, flat or nested; further keys are ignored.

        Raises: KeyError for a key that is missing, ValueError for a state that is none, TypeError.
        """
        fields = {**fields, **fields.get("trial", {})}
        outcomes, context = split_outcomes(fields.get("outcomes") or {})
        reason = fields.get("reason")
        if reason and not fields.get("outcomes"):
            reason, context = split_reason(reason)
        state = TrialState(fields["state"])
        return cls(
            Trial(dict(fields["configuration"]), state, fields["objective"], str(fields["trial_id"]), context),
            fields["study_id"],
            owner=fields.get("owner"),
            lease_expires_ns=fields.get("lease_expires_ns"),
            run_id=fields.get("run_id"),
            reason=reason,
            job=fields.get("job"),
            checkpoint=fields.get("checkpoint"),
            outcomes=outcomes,
            losses=int(fields.get("losses") or 0),
            weights=dict(fields.get("weights") or {}),
            charged=bool(fields.get("charged", True)),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the record and its trial as one object of JSON values, the context among outcomes or reason."""
        trial = self.trial
        is_done = trial.state is TrialState.DONE
        return {
            "trial_id": trial.trial_id,
            "study_id": self.study_id,
            "configuration": dict(trial.configuration),
            "state": trial.state,
            "objective": trial.objective,
            "owner": self.owner,
            "lease_expires_ns": self.lease_expires_ns,
            "run_id": self.run_id,
            "reason": reason_with(self.reason or "", trial.context) if trial.context and not is_done else self.reason,
            "job": self.job,
            "checkpoint": self.checkpoint,
            "outcomes": outcomes_with(self.outcomes, trial.context if is_done else {}),
            "losses": self.losses,
            "weights": dict(self.weights),
            "charged": self.charged,
        }

    def as_nested_json(self) -> dict[str, Any]:
        """Return the same with the trial as an object of its own, `trial`."""
        fields = self.as_json()
        trial = {name: fields.pop(name) for name in ("configuration", "state", "objective", "trial_id")}
        return {"trial": trial, **fields}


def is_wrapped(space: Mapping[str, object]) -> bool:
    """Return whether the JSON of a space has its parameters in a field of their own, rather than being them."""
    parameters = space.get("parameters")
    return isinstance(parameters, Mapping) and not isinstance(parameters.get("kind"), str)


def unit_of_objective(objective: str) -> str:
    """Return the unit in which the name of an outcome ends, `s` of `step_p50_seconds`; empty of any other objective."""
    return UNITS.get(objective.rpartition("_")[2], "") if objective.isidentifier() else ""


@dataclass(frozen=True)
class History:
    """A search that another tool made: the study, and its trials in the order in which they were evaluated."""

    study: Study
    trials: tuple[Trial, ...]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_given(value: object) -> bool:
    return value is not None


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(text, str) for text in value)


# Words of `details` that are fields of a study where their value fits; it stays in `details` where it does not.
_DETAILS: Mapping[str, Callable[[object], bool]] = {
    "direction": _is_text,
    "objectives": bool,
    "limits": bool,
    "hours": _is_given,
    "repeats": _is_given,
    "command": _are_texts,
    "workload": _is_text,
    "system": _is_text,
    "world_size": _is_number,
    "node_count": _is_number,
    "stop_early": _is_given,
    "define_by_run": lambda value: value is True,
    "sources": lambda value: value in ("auto", "none") or _are_texts(value),
    "start": bool,
    "search": _is_given,
    "stop": _is_given,
}
_LISTS = ("objectives", "limits", "command")


def sources_from_json(value: object) -> tuple[str, ...] | None:
    """Return the sources of a study: None for `auto`, () for `none`, else names. Raises: InvalidInputError."""
    if value in ("auto", "none"):
        return None if value == "auto" else ()
    if not _are_texts(value) or not isinstance(value, Sequence) or not all(name.strip() for name in value):
        raise InvalidInputError(f"sources is {value!r:.80}, expected auto, none or a list of names of studies")
    return tuple(dict.fromkeys(value))


def _texts(word: str, value: object) -> tuple[str, ...]:
    if not _are_texts(value) or not isinstance(value, Sequence):
        raise InvalidInputError(f"details: {word} is {value!r:.80}, expected a list of texts")
    return tuple(value)


def _configurations(value: object) -> tuple[Configuration, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in value):
        raise InvalidInputError(f"start is {value!r:.80}, expected a list of configurations")
    return tuple(dict(entry) for entry in value)


def _check_word(name: str, value: object, words: Collection[str]) -> None:
    if value is not None and value not in words:
        raise InvalidInputError(f"{name} is {value!r:.80}, expected {' or '.join(words)}")


def _check_positive(name: str, value: object, most: float) -> None:
    is_fit = value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most)
    if not is_fit:
        raise InvalidInputError(f"{name} is {value!r:.80}, expected a number above 0 up to {most:g}")
