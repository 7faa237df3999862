"""Spaces of programs that name their parameters while they run: known in part, and with conditions nobody wrote down.

A condition is read off the complete trials: where one of their parameters was missing exactly with certain values of
another one, it applies with the others, and with values that were not tried yet. A wrong guess costs little: the
program asks for what it needs, and the next guess heeds it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from zlib import crc32

from crosswind.data.schema.trial import Configuration, Parameter, Study, TrialRecord, TrialState
from crosswind.models.tuner.search.search import Search

if TYPE_CHECKING:  # NumPy, which those do without who only look at a study
    from crosswind.models.tuner.space.space import Space

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # that a condition may say
PLAIN_TEXT = re.compile(r"[^'\"\\]*")
MEASURED = frozenset({TrialState.DONE, TrialState.PRUNED})

Parameters = Mapping[str, Mapping[str, object]]


def with_conditions(parameters: Parameters, configurations: Sequence[Configuration]) -> dict[str, dict[str, object]]:
    """Return the parameters, each with the condition that explains where it is missing; without one, it always applies.

    A condition names only parameters that are there more often, so that none depends on itself.
    """
    counts = {name: sum(name in one for one in configurations) for name in parameters}
    conditioned = {name: dict(parameter) for name, parameter in parameters.items()}
    for name in (name for name, count in counts.items() if 0 < count < len(configurations)):
        others = [other for other in parameters if counts[other] > counts[name] and NAME.fullmatch(other)]
        texts = (_condition(name, other, configurations) for other in sorted(others, key=_rank(parameters)))
        if text := next(filter(None, texts), None):
            conditioned[name]["when"] = text
    return conditioned


def _rank(parameters: Parameters) -> Callable[[str], int]:
    """Order parameters by how likely others hang on them: choices first, numbers last."""
    kinds = ("categorical", "boolean", "ordinal", "int", "float")
    return lambda name: kinds.index(str(parameters[name]["kind"]))


def _condition(name: str, other: str, configurations: Sequence[Configuration]) -> str | None:
    """Return the condition on the other parameter that says where this one is there, None where there is none."""
    if any(name in one and other not in one for one in configurations):
        return None
    there = {one[other] for one in configurations if name in one}
    missing = {one[other] for one in configurations if name not in one and other in one}
    if there & missing:
        return None
    return _of_choices(other, missing) if _are_choices(missing | there) else _of_numbers(other, there, missing)


def _are_choices(values: set[Parameter]) -> bool:
    return any(isinstance(value, str | bool) for value in values)


def _of_choices(other: str, missing: set[Parameter]) -> str | None:
    if not all(PLAIN_TEXT.fullmatch(str(value)) for value in missing):
        return None
    return f"not ({' or '.join(f'{other} == {value!r}' for value in sorted(missing, key=repr))})"


def _of_numbers(other: str, there: set[Parameter], missing: set[Parameter]) -> str | None:
    """Return a threshold where one divides the numbers, else that it is none of a few whole ones."""
    present, absent = sorted(map(float, there)), sorted(map(float, missing))
    if absent[-1] < present[0]:
        return f"{other} > {absent[-1]!r}"
    if present[-1] < absent[0]:
        return f"{other} < {absent[0]!r}"
    is_whole = all(number.is_integer() for number in absent)
    return f"not ({' or '.join(f'{other} == {number!r}' for number in absent)})" if is_whole else None


@dataclass
class GrowingSearch:
    """A search whose space follows the trials; until a parameter is named, it suggests empty configurations.

    Args:
        study: The study, with the parameters that are known.
        make: Makes the search of a study over a space that is known.
    """

    study: Study
    make: Callable[[Study], Search]
    _records: dict[str, TrialRecord] = field(default_factory=dict, init=False)
    _space: Mapping[str, object] = field(default_factory=dict, init=False)
    _search: Search | None = field(default=None, init=False)
    _news: list[str] = field(default_factory=list, init=False)

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learn the newest state of these trials."""
        self._records |= {record.trial_id: record for record in records}
        self._news += [record.trial_id for record in records]

    def suggest(self, count: int) -> list[Configuration]:
        """Return configurations to try next."""
        parameters = parameters_of(self.study)
        if not parameters:
            return [{} for _ in range(count)]
        return self._fed(parameters).suggest(count)

    def weights(self) -> Mapping[str, float]:
        """Return the weights of the search over the space as it is known."""
        return self._search.weights() if self._search else {}

    def _fed(self, parameters: Parameters) -> Search:
        """Return the search over the space as it is known now, which has observed all trials."""
        space = _space_json(parameters, list(self._records.values()))
        if self._search is None or space != self._space:
            self._search = self.make(replace(self.study, space=space, define_by_run=False))
            self._space, self._news = space, list(self._records)
        from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - see above

        read = Space.from_json(space)
        whole = (fitting(read, self._records[trial_id]) for trial_id in dict.fromkeys(self._news))
        self._search.observe([record for record in whole if record])
        self._news = []
        return self._search


def parameters_of(study: Study) -> Parameters:
    """Return the parameters of a study that is defined by its runs."""
    parameters = study.space.get("parameters")
    return parameters if isinstance(parameters, Mapping) else {}


def space_of(study: Study, records: Sequence[TrialRecord]) -> "Space":
    """Return the space of a study that is defined by its runs, with the conditions that its trials show.

    Raises: InvalidInputError before its first parameter.
    """
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - see above

    return Space.from_json(_space_json(parameters_of(study), records))


def settled_study(study: Study, records: Sequence[TrialRecord]) -> tuple[Study, list[TrialRecord]]:
    """Return a study that is defined by its runs as one of a fixed space, with the records that fit it.

    Raises: InvalidInputError before its first parameter.
    """
    space = space_of(study, records)
    fits = [whole for record in records if (whole := fitting(space, record))]
    return replace(study, space=space.as_json(), define_by_run=False), fits


def _space_json(parameters: Parameters, records: Sequence[TrialRecord]) -> dict[str, object]:
    done = [record.trial.configuration for record in records if record.trial.state is TrialState.DONE]
    return {"parameters": with_conditions(parameters, done)}


def fitting(space: "Space", record: TrialRecord) -> TrialRecord | None:
    """Return the record with exactly the parameters that apply; None where it says nothing about those it lacks.

    A measured trial that lacks some, as they were not asked for, has random values there: any would do as well.
    """
    own = record.trial.configuration
    configuration = space.settled(own, crc32(record.trial_id.encode()))
    if not configuration.keys() <= own.keys() and record.trial.state not in MEASURED:
        return None
    return replace(record, trial=replace(record.trial, configuration=configuration))
