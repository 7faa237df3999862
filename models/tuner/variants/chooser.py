"""The choice of a code's variant for an input, from trials on other inputs and a few on this one."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.variants.experience import Choice, Context, Experience
from crosswind.models.tuner.variants.hypotheses import Hypotheses
from crosswind.models.tuner.variants.precedents import Precedents

Key = frozenset[tuple[str, Parameter]]
Claims = npt.NDArray[np.bool_]
Applies = Callable[[Configuration, Context], bool]


def everywhere(variant: Configuration, context: Context) -> bool:  # noqa: ARG001 - no theory rules anything out
    """Return true: every variant may be tried on every context."""
    return True


class VariantChooser:
    """Ranks variants for a context; `suggest` and `observe` as a tuner has them, with a context.

    Every earlier context is a hypothesis about the new one, and a forecast from the features is one more. Their weights
    come from the features, then from the trials on the context; expected regret and failures are means over them. The
    variant to try next is the one that is expected to save most on top of those tried already.

    Args:
        variants: To choose from, without duplicates.
        seed: Of the forests.
        applies: Whether a variant may be tried on a context; rules variants out before anything runs, as theory does.

    Raises:
        InvalidInputError: Without a variant, or for one that is there twice.

    Example:
        >>> chooser = VariantChooser([{"solver": "direct"}, {"solver": "multigrid"}])
        >>> small, large = Context("a", {"rows": 1e3}), Context("b", {"rows": 1e7})
        >>> chooser.learn([Experience(small, {"solver": "direct"}, objective=0.5)])
        >>> chooser.suggest(large)
    """

    def __init__(self, variants: Sequence[Configuration], seed: int = 0, *, applies: Applies = everywhere) -> None:
        self._variants = list(variants)
        self._place_of: dict[Key, int] = {_key(variant): place for place, variant in enumerate(self._variants)}
        if not self._variants or len(self._place_of) < len(self._variants):
            raise InvalidInputError(f"{len(self._variants)} variants, expected at least one and each of them once")
        self._seed = seed
        self._applies = applies
        self._trials: dict[str, dict[int, float | None]] = {}
        self._precedents = Precedents.of([], *_tables([], {}, len(self._variants)), seed=seed)

    def learn(self, experiences: Iterable[Experience]) -> Self:
        """Learn from earlier contexts, in place of what was learned before. Raises: InvalidInputError."""
        contexts: dict[str, Context] = {}
        measured: dict[str, dict[int, float | None]] = {}
        for experience in experiences:
            contexts[experience.context.name] = experience.context
            _keep_better(
                measured.setdefault(experience.context.name, {}), self._place(experience.variant), experience.objective
            )
        objectives, failed = _tables(list(contexts), measured, len(self._variants))
        self._precedents = Precedents.of(list(contexts.values()), objectives, failed, seed=self._seed)
        return self

    def observe(self, trials: Iterable[Experience]) -> None:
        """Take trials on the contexts to choose for. Raises: InvalidInputError for an unknown variant."""
        for trial in trials:
            _keep_better(self._trials.setdefault(trial.context.name, {}), self._place(trial.variant), trial.objective)

    def suggest(
        self, context: Context, count: int = 1, *, pending: Collection[Configuration] = ()
    ) -> list[Configuration]:
        """Return variants to try next on the context, in order, none tried already or pending; fewer when few are left.

        Raises: InvalidInputError.
        """
        check_count(count)
        hypotheses = self._hypotheses(context)
        tried = [*self._trials.get(context.name, {}), *(self._place(variant) for variant in pending)]
        ruled_out = [place for place, rules in enumerate(self._ruled_out(context).tolist()) if rules]
        chosen: list[int] = []
        for _ in range(min(count, len(self._variants) - len({*tried, *ruled_out}))):
            chosen.append(self._next(hypotheses, [*tried, *chosen], ruled_out))
        return [self._variants[place] for place in chosen]

    def rank(self, context: Context) -> list[Choice]:
        """Return all variants with their expectations, the least expected regret first."""
        hypotheses = self._hypotheses(context)
        regret, failures = hypotheses.weights @ hypotheses.regret, hypotheses.weights @ hypotheses.failed
        trials = self._trials.get(context.name, {})
        for place, objective in trials.items():
            failures[place] = float(objective is None)
        failing = np.array([trials.get(place, 1.0) is None for place in range(len(self._variants))])
        order = np.lexsort((regret, failing))
        return [self._choice(place, regret, failures, trials) for place in order.tolist()]

    def best(self, context: Context) -> Choice:
        """Return the best of the variants that were tried and did not fail, else the one expected to be best."""
        trials = self._trials.get(context.name, {})
        solved = {place: objective for place, objective in trials.items() if objective is not None}
        ranking = self.rank(context)
        if not solved:
            return ranking[0]
        least = self._variants[min(solved, key=solved.__getitem__)]
        return next(choice for choice in ranking if choice.variant is least)

    def _choice(self, place: int, regret: Floats, failures: Floats, trials: Mapping[int, float | None]) -> Choice:
        return Choice(self._variants[place], float(regret[place]), float(failures[place]), place in trials)

    def _next(self, hypotheses: Hypotheses, tried: list[int], ruled_out: list[int]) -> int:
        """Return the untried variant that saves most beyond the best of the tried, over the hypotheses."""
        expected = hypotheses.weights @ hypotheses.regret
        if len(tried) and len(hypotheses.regret):
            so_far = hypotheses.regret[:, tried].min(axis=1, keepdims=True)
            saved = hypotheses.weights @ np.maximum(so_far - hypotheses.regret, 0)
            expected = 1e-6 * expected - saved
        expected[[*tried, *ruled_out]] = np.inf
        return int(expected.argmin())

    def _hypotheses(self, context: Context) -> Hypotheses:
        """Return hypotheses about the context, weighted by its features and by the trials on it."""
        hypotheses = self._precedents.about(context).without(self._ruled_out(context))
        return hypotheses.after(self._trials.get(context.name, {}))

    def _ruled_out(self, context: Context) -> Claims:
        return np.array([not self._applies(variant, context) for variant in self._variants])

    def _place(self, variant: Configuration) -> int:
        try:
            return self._place_of[_key(variant)]
        except KeyError:
            raise InvalidInputError(f"variant {dict(variant)} is none of the {len(self._variants)} known") from None


def _key(variant: Configuration) -> Key:
    return frozenset(variant.items())


def _keep_better(objectives: dict[int, float | None], place: int, objective: float | None) -> None:
    """Store the least of several measurements; a measurement outweighs a failure."""
    previous = objectives.get(place)
    objectives[place] = (
        objective if previous is None else min(previous, objective if objective is not None else previous)
    )


def _tables(
    names: Sequence[str], measured: Mapping[str, Mapping[int, float | None]], count: int
) -> tuple[Floats, Floats]:
    """Return objectives and failures, shape (len(names), count), NaN where there is none."""
    objectives, failed = np.full((2, len(names), count), np.nan)
    for row, name in enumerate(names):
        for place, objective in measured[name].items():
            objectives[row, place] = np.nan if objective is None else objective
            failed[row, place] = float(objective is None)
    return objectives, failed
