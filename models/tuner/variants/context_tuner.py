"""A tuner that chooses for one context, from what other contexts showed."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.experience import Context, Experience

VARIANTS_MAX = 1000  # each has its expected regret, in every context


class ContextTuner:
    """Suggests what was not tried in this context, the configuration that should save most there first.

    A service's trials lack their contexts: measurements are given when it is made, and `observe` adds nothing.
    """

    name: ClassVar[str] = "variants"

    def __init__(self, space: Space, seed: int, context: Context, experiences: Iterable[Experience]) -> None:
        """Raises: InvalidInputError for a space too large to rank, or an experience of another one."""
        if space.size > VARIANTS_MAX:
            raise InvalidInputError(
                f"the space has {space.size} configurations, expected at most {VARIANTS_MAX} to choose by a context"
            )
        self._context = context
        remembered = list(experiences)
        self._chooser = VariantChooser(space.configurations(), seed)
        self._chooser.learn(experience for experience in remembered if experience.context != context)
        self._chooser.observe(experience for experience in remembered if experience.context == context)

    def suggest(self, count: int) -> list[Configuration]:
        """Distinct configurations; fewer where the space has no more for this context. Raises: InvalidInputError."""
        return self._chooser.suggest(self._context, count)

    def observe(self, trials: Sequence[Trial]) -> None:
        """Changes nothing."""
