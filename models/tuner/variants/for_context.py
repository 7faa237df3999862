"""The tuner of a study for one context; light to import, as every job script does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosswind.data.schema.context import Numbers, context_text
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import ENDED, TrialRecord

if TYPE_CHECKING:
    from crosswind.models.tuner.search.search import MakeTuner
    from crosswind.models.tuner.space.space import Space
    from crosswind.models.tuner.variants.context_tuner import ContextTuner


def tuner_for_context(context: Numbers, records: Sequence[TrialRecord]) -> "MakeTuner":
    """Return a maker of tuners that choose for this context by the study's ended trials with theirs.

    Raises: InvalidInputError for a name that the study's contexts do not have or one that is missing, and as
    `ContextTuner`.
    """
    from crosswind.models.tuner.variants.context_tuner import ContextTuner  # noqa: PLC0415 - heavy
    from crosswind.models.tuner.variants.experience import Context, Experience  # noqa: PLC0415 - heavy

    trials = [record.trial for record in records if record.trial.state in ENDED and record.trial.context]
    if trials:
        _check_names(context, trials[-1].context)
    experiences = [
        Experience(Context(context_text(trial.context), trial.context), trial.configuration, trial.objective)
        for trial in trials
    ]

    def make_tuner(space: "Space", seed: int) -> "ContextTuner":
        return ContextTuner(space, seed, Context(context_text(context), context), experiences)

    return make_tuner


def _check_names(context: Numbers, latest: Numbers) -> None:
    """Refuse a context unlike the study's latest one. Raises: InvalidInputError naming the number."""
    expected = ", ".join(sorted(latest))
    for name in sorted(context.keys() ^ latest.keys()):
        fault = "is unknown" if name in context else "is missing"
        raise InvalidInputError(f"context: {name} {fault}, expected {expected} as in the study's earlier trials")
