"""Energy of runs that no meter covered, estimated as that of runs to come is."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.schema.answers.energy import EnergyForecast, MeasuredEnergy
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import Run
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import energy_of_run
from crosswind.models.energy.metered import MeteredRun, Meters
from crosswind.models.energy.of_run import energy_of
from crosswind.models.surrogate.surrogate import LEVELS


def energy_or_estimate(
    store: Store, run: Run, intensity: CarbonIntensity | None
) -> MeasuredEnergy | EnergyForecast | None:
    """Return the energy that meters showed of a run, else an estimate; None where nothing gives its power.

    Raises: MalformedError for a damaged file.
    """
    measured = energy_of_run(store, run, intensity)
    if measured is not None or not run.seconds or run.seconds <= 0:
        return measured
    [facts] = facts_of_runs(store, [run])
    metered = Meters(store).runs(run.workload, run.system)
    return estimated_energy(replace(run, facts=facts), metered, intensity)


def estimated_energy(
    run: Run, metered: Sequence[MeteredRun], intensity: CarbonIntensity | None = None
) -> EnergyForecast | None:
    """Return the energy of a run that has ended, of its measured time and a power of metered runs or a data sheet."""
    ranks, nodes = run.world_size or len(run.nodes), len(set(run.nodes))
    if not ranks or not run.seconds or run.seconds <= 0:
        return None
    spread = nodes if 1 <= nodes <= ranks else None
    question = Question(run.workload, run.system, run.configuration, ranks, spread, run.facts)
    seconds = Prediction(LEVELS, np.full((1, len(LEVELS)), run.seconds))
    return energy_of(question, seconds, metered, intensity=intensity)
