"""Energy of the next run: a node's power, metered or by a data sheet, times nodes and the predicted time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.answers.energy import EnergyForecast, MeterScope, PowerBasis
from crosswind.data.schema.carbon import CarbonIntensity, Energy, Origin
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.models.energy.load_power import LearnedPower, Load, learned_power
from crosswind.models.energy.metered import MeteredRun, accelerator_of, positive_numbers
from crosswind.models.surrogate.log_normal import widened

# A whole node over the sum of its accelerators' limits: 1.0 to 1.3 in MLPerf's power logs of H100 nodes, whose
# accelerators are kept busy; other trainings leave them waiting.
DATA_SHEET_RATIO = 1.0
DATA_SHEET_DEVIATION = 0.4  # of its logarithm


@dataclass(frozen=True)
class Power:
    """Median watts of all nodes, the deviation of their logarithm, and their origin."""

    watts: float
    log_deviation: float
    node_count: int | None
    scope: MeterScope
    basis: PowerBasis
    runs: int


def energy_of(
    question: Question,
    seconds: Prediction,
    metered: Sequence[MeteredRun],
    *,
    is_job: bool = False,
    intensity: CarbonIntensity | None = None,
) -> EnergyForecast | None:
    """Energy over the predicted time, one row of quantiles; None where neither a meter nor a data sheet gives power.

    The time and the power are taken to err independently. is_job: the question's scale is a number of nodes.
    """
    load = _load(question, is_job=is_job)
    learned = learned_power(metered, load)
    power = _of_data_sheet(load) if learned is None else _of_nodes(learned)
    if power is None or not np.all(seconds.values > 0):
        return None
    median = np.log(power.watts * seconds.at(0.5))
    joules = widened(median, seconds, np.array([power.log_deviation]))
    [middle], [low], [high] = (joules.at(level) for level in (0.5, 0.05, 0.95))
    is_metered = power.basis in (PowerBasis.COHORT, PowerBasis.WORKLOAD)
    origin = Origin.MEASURED if is_metered else Origin.ESTIMATED
    return EnergyForecast(
        *(float(middle), float(low), float(high)),
        node_watts=None if power.node_count is None else power.watts / power.node_count,
        node_count=power.node_count,
        origin=origin,
        scope=power.scope,
        basis=power.basis,
        metered_runs=power.runs,
        carbon_grams=None if intensity is None else intensity.of(Energy(float(middle), origin)).grams,
    )


def _load(question: Question, *, is_job: bool) -> Load:
    as_run = Run(
        "",
        question.workload,
        question.system,
        RunState.COMPLETED,
        world_size=question.world_size,
        configuration=question.configuration,
    )
    ranks = None if is_job else question.world_size
    nodes = question.world_size if is_job else question.node_count
    named = (question.workload, question.system, cohort_key(as_run))
    accelerator = accelerator_of(question.facts, question.configuration)
    return Load(*named, ranks, nodes, accelerator, positive_numbers(question.configuration))


def _of_nodes(learned: LearnedPower) -> Power:
    rest = (learned.node_count, learned.scope, learned.basis, learned.runs)
    return Power(learned.watts * learned.node_count, learned.log_deviation, *rest)


def _of_data_sheet(load: Load) -> Power | None:
    """Power by the limit of each rank's accelerator; None where no accelerator is named, or no limit is published."""
    device = device_named(load.accelerator)
    if load.ranks is None or device is None or not np.isfinite(device.power_watts):
        return None
    watts = DATA_SHEET_RATIO * device.power_watts * load.ranks
    return Power(watts, DATA_SHEET_DEVIATION, load.node_count, MeterScope.NODE, PowerBasis.DATA_SHEET, 0)
