"""Warnings and hints for questions about what never ran."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeGuard

from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.question import Question
from crosswind.models.next_run.completion import device_of

NAMES_SHOWN = 6
EARLIER = "earlier runs had"  # what follows are values of runs that were fitted


class NothingKnownError(InvalidInputError):
    """Nothing is known to predict a workload from; `choices` are workloads that are known."""

    def __init__(self, workload: str, outcome: str, choices: Iterable[str]) -> None:
        self.workload, self.outcome = workload, outcome
        super().__init__(
            f"workload {workload!r}: no earlier run has {outcome}{suggestion(workload, choices)}; for an estimate by "
            "formulas the configuration must give the network (hidden, layers) or (flops_per_sample, parameters), "
            "the batch, and of a whole run its steps"
        )


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return `; did you mean ...?`, or `; known are ...`."""
    names = sorted(set(choices))
    close = get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(names[:NAMES_SHOWN])}{' ...' if len(names) > NAMES_SHOWN else ''}" if names else ""


def unvalued(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings without the values, or the parameters, of earlier runs."""
    cut = (said.partition(f", {EARLIER}") for said in warnings)
    return tuple(
        f"{said}, which no earlier run had" if mark else said
        for said, mark, _ in cut
        if not (mark and said.endswith("is not given"))
    )


def novelties(question: Question, ran: Sequence[Question]) -> list[str]:
    """Return a sentence for each value of the question that no earlier run had: an answer there extrapolates."""
    if not ran:
        return []
    past = [_values(earlier) for earlier in ran]
    asked = _values(question)
    names = sorted({name for values in past for name in values} | set(asked))
    sentences = []
    for name in names:
        had = [values[name] for values in past if name in values]
        if name in asked or len(had) == len(past):  # a parameter that some runs did not have may be left out
            sentences.append(_novelty(name, asked.get(name), had))
    return [sentence for sentence in sentences if sentence]


def device_warnings(question: Question, ran: Sequence[Question]) -> list[str]:
    """Return a sentence where nothing is known of a question's accelerator, or no earlier run had its device."""
    asked = device_of(question)
    if not asked:
        return []
    had = sorted({device_of(earlier) for earlier in ran} - {""})
    is_accelerator = question.facts.accelerators_per_node != 0
    unknown = f"accelerator {asked} is not in the table of devices: its peak figures are unknown"
    new = f"device is {asked}, {EARLIER} {', '.join(had[:NAMES_SHOWN])}"
    return [
        *([unknown] if is_accelerator and not device_named(asked) else []),
        *([new] if had and asked not in had else []),
    ]


def _values(question: Question) -> dict[str, Scalar]:
    return {**question.configuration, "world_size": question.world_size, "system": question.system}


def _novelty(name: str, value: Scalar, past: Sequence[Scalar]) -> str:
    if value is None:
        return f"{name} is not given, {EARLIER} it"
    if not past:
        return f"{name} is {value}, no earlier run had it"
    numbers = [earlier for earlier in past if _is_number(earlier)]
    if _is_number(value) and numbers:
        low, high = min(numbers), max(numbers)
        return "" if low <= value <= high else f"{name} is {value}, {EARLIER} {low} to {high}"
    seen = sorted({str(earlier) for earlier in past})
    return "" if str(value) in seen else f"{name} is {value}, {EARLIER} {', '.join(seen[:NAMES_SHOWN])}"


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
