"""The step time of a run by formulas, from its configuration alone."""

from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import Run
from crosswind.models.analytic.machine.devices import device_named
from crosswind.models.next_run.formulas import predicted_by_formulas

DEVICE = "accelerator"  # a parameter, or a tag of a run that was imported


def by_formulas(run: Run) -> Interval | None:
    """Return seconds of a step, with a 90 % interval; None where the configuration describes no network on a device."""
    device = str(run.configuration.get(DEVICE, run.tags.get(DEVICE, "")))
    if device_named(device) is None:  # any other device would be a guess by a factor of a thousand
        return None
    try:
        configuration = {**run.configuration, DEVICE: device}
        question = Question(run.workload, run.system, configuration, run.world_size or 1, len(run.nodes) or None)
        predicted = predicted_by_formulas([question], is_step=True)
    except InvalidInputError:
        return None
    if predicted is None:
        return None
    low, median, high = (float(predicted.at(level)[0]) for level in (0.05, 0.5, 0.95))
    return Interval(median, low, high)
