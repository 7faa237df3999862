"""A tuner that chooses for one context, from trials in other contexts."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.experience import Context, Experience

VARIANTS_MAX = 1000  # each has its expected regret, in every context


class ContextTuner:
    """Suggests configurations untried in this context, first the one that should save most there.

    It takes all measurements when it is made; `observe` adds nothing.

    Args:
        space: The configurations to choose from, at most VARIANTS_MAX.
        seed: Of the forests.
        context: The one to choose for.
        experiences: Trials in this context and in others.

    Raises:
        InvalidInputError: For a space too large to rank, or an experience of another one.
    """

    name: ClassVar[str] = "variants"

    def __init__(self, space: Space, seed: int, context: Context, experiences: Iterable[Experience]) -> None:
        if space.size > VARIANTS_MAX:
            raise InvalidInputError(
                f"the space has {space.size} configurations, expected at most {VARIANTS_MAX} to choose by a context"
            )
        self._context = context
        measured = list(experiences)
        self._chooser = VariantChooser(space.configurations(), seed)
        self._chooser.learn(experience for experience in measured if experience.context != context)
        self._chooser.observe(experience for experience in measured if experience.context == context)

    def suggest(self, count: int) -> list[Configuration]:
        """Return distinct configurations; fewer where the space has no more for it. Raises: InvalidInputError."""
        return self._chooser.suggest(self._context, count)

    def observe(self, trials: Sequence[Trial]) -> None:
        """Change nothing."""
