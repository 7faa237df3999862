"""The step time of a run by formulas, from its configuration and the facts of its system alone."""

from crosswind.data.devices.computing import computing_device
from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import Run
from crosswind.models.next_run.formulas import predicted_by_formulas


def by_formulas(run: Run) -> Interval | None:
    """Return seconds of a step, with a 90 % interval; None where the configuration describes no network on a device."""
    if device_named(computing_device(run.facts, run.configuration)) is None:
        return None  # any other device would be a guess by a factor of a thousand
    try:
        ranks, nodes = run.world_size or 1, len(run.nodes) or None
        question = Question(run.workload, run.system, run.configuration, ranks, nodes, run.facts)
        predicted = predicted_by_formulas([question], is_step=True)
    except InvalidInputError:
        return None
    if predicted is None:
        return None
    low, median, high = (float(predicted.at(level)[0]) for level in (0.05, 0.5, 0.95))
    return Interval(median, low, high)
