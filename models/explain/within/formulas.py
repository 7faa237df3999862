"""The step time of a run by formulas, from its configuration alone."""

from crosswind.data.devices.computing import ACCELERATOR, computing_device
from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import Run
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.store import Store
from crosswind.models.next_run.formulas import formula_columns, network_in, predicted_by_formulas


def by_formulas(store: Store, run: Run) -> Interval | None:
    """Return seconds of a step, with a 90 % interval; None where no network or no device of the table is described."""
    if network_in(formula_columns(run.configuration, run.world_size or 1, None)) is None:
        return None
    [facts] = facts_of_runs(store, [run])
    return formulas_of(run, facts)


def formulas_of(run: Run, facts: Facts) -> Interval | None:
    """Return the same for a run with these facts."""
    device = computing_device(facts, run.configuration)
    if device_named(device) is None:  # any other device would be a guess by a factor of a thousand
        return None
    try:
        configuration = {**run.configuration, ACCELERATOR: device}
        question = Question(run.workload, run.system, configuration, run.world_size or 1, len(run.nodes) or None)
        predicted = predicted_by_formulas([question], is_step=True)
    except InvalidInputError:
        return None
    if predicted is None:
        return None
    low, median, high = (float(predicted.at(level)[0]) for level in (0.05, 0.5, 0.95))
    return Interval(median, low, high)
