"""Spaces that are defined by running: parameters of past trials, and which of them decide whether others apply."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from crosswind.data.schema.trial import Configuration

Distributions: TypeAlias = Mapping[str, BaseDistribution]
QUOTED = frozenset("\"'\\")  # characters that no text in a condition may have


def agreed(spaces: Iterable[Distributions]) -> dict[str, BaseDistribution]:
    """Return the distributions of all trials' parameters, of those that have more than one value and never changed."""
    kinds: dict[str, BaseDistribution] = {}
    changed = set()
    for space in spaces:
        for name, kind in space.items():
            if kinds.setdefault(name, kind) != kind or kind.single():
                changed.add(name)
    return {name: kind for name, kind in kinds.items() if name not in changed}


def conditions_of(kinds: Distributions, trials: Sequence[Configuration]) -> dict[str, str]:
    """Return the condition under which each parameter applies that only some trials have, as a text for `when`.

    A parameter that no single other one decides has none. Later trials may refute a condition: then there is another.

    Args:
        kinds: Distributions of the parameters, in the order in which trials asked for them.
        trials: The values of complete trials, in our terms.
    """
    always = [name for name in kinds if all(name in trial for trial in trials)]
    conditions: dict[str, str] = {}
    for name in kinds:
        if name not in always:
            deciders = _ranked({other: kinds[other] for other in (*always, *conditions)})
            candidates = (_condition(name, decider, kinds[decider], trials) for decider in deciders)
            condition = next(filter(None, candidates), "")
            conditions |= {name: condition} if condition else {}
    return conditions


def _ranked(kinds: Distributions) -> list[str]:
    """Return the parameters that may decide, choices before whole numbers."""
    named = [name for name in kinds if name.isidentifier()]
    return [
        *(name for name in named if isinstance(kinds[name], CategoricalDistribution)),
        *(name for name in named if isinstance(kinds[name], IntDistribution)),
    ]


def _condition(name: str, decider: str, kind: BaseDistribution, trials: Sequence[Configuration]) -> str:
    """Return the condition on the deciding parameter; empty where it does not separate the trials."""
    having: list[Any] = [trial.get(decider) for trial in trials if name in trial]
    lacking: list[Any] = [trial[decider] for trial in trials if name not in trial and decider in trial]
    if None in having or not lacking or set(having) & set(lacking):
        return ""
    if isinstance(kind, IntDistribution):
        if min(having) > max(lacking):
            return f"{decider} > {max(lacking)}"
        return f"{decider} < {min(lacking)}" if max(having) < min(lacking) else ""
    values = list(dict.fromkeys(having))
    is_plain = all(not isinstance(value, str) or (value.isprintable() and not set(value) & QUOTED) for value in values)
    return f"{decider} in ({', '.join(map(repr, values))},)" if is_plain else ""
