"""Energy in words."""

from crosswind.dashboards.wording import count, number, percent
from crosswind.data.schema.answers.energy import EnergyForecast, MeasuredEnergy

UNITS = ((3.6e9, "MWh"), (3.6e5, "kWh"), (1e3, "kJ"), (0.0, "J"))  # from so many joules on
JOULES = {"MWh": 3.6e9, "kWh": 3.6e6, "kJ": 1e3, "J": 1.0}
GRAMS = ((1e6, "t"), (1e3, "kg"), (0.0, "g"))
BASES = {
    "cohort": "from {metered_runs} of this configuration and scale on this system",
    "workload": "from {metered_runs} of the workload on this system",
    "related": "estimated: from {metered_runs} of other workloads here or of this one elsewhere",
    "data_sheet": "estimated by the accelerator's power limit: no such run was metered",
}
SCOPES = {
    "node": "",
    "accounted": ", as the scheduler meters",
    "recorded": ", as the runs' own records state",
    "chips": ", of processors, memory and accelerators alone",
    "accelerators": ", of accelerators alone",
    "processors": ", of processors and their memory alone",
}


def unit_of(joules: float) -> str:
    """The unit that suits so many joules."""
    return next(unit for least, unit in UNITS if joules >= least)


def forecast_words(energy: EnergyForecast) -> str:
    """The energy of an answer: `1.2 kWh [1.0 .. 1.5], from 12 metered runs of ...`."""
    unit = unit_of(energy.joules)
    middle, low, high = (
        number(joules / JOULES[unit]) for joules in (energy.joules, energy.low_joules, energy.high_joules)
    )
    return f"{middle} {unit} [{low} .. {high}]{_rest(energy)}, {power_words(energy)}"


def power_words(energy: EnergyForecast) -> str:
    """Return the basis of a node's power: `from 12 metered runs of the workload on this system; 510 W a node`."""
    power = "" if energy.node_watts is None else f"; {number(energy.node_watts)} W a node"
    return f"{BASES[energy.basis].format(metered_runs=count(energy.metered_runs, 'metered run'))}{power}"


def measured_words(energy: MeasuredEnergy) -> str:
    """Return the measured energy of a run: `1.2 kWh, measured by pm_counters; 510 W a node`."""
    covered = "" if energy.coverage >= 1 else f" over {percent(energy.coverage)} of the time"
    words = f"measured by {energy.meter}{covered}; {number(energy.node_watts)} W a node"
    return f"{joules_words(energy.joules)}{_rest(energy)}, {words}"


def joules_words(joules: float) -> str:
    """Return an energy in the unit that suits it: `1.2 kWh`."""
    unit = unit_of(joules)
    return f"{number(joules / JOULES[unit])} {unit}"


def _rest(energy: EnergyForecast | MeasuredEnergy) -> str:
    """Return the meters' scope, if they miss a part, and the carbon, if its intensity is set."""
    grams = energy.carbon_grams
    carbon = "" if grams is None else f" ({_mass(grams)} CO2e)"
    return f"{carbon}{SCOPES[energy.scope]}"


def _mass(grams: float) -> str:
    scale, unit = next((max(least, 1.0), unit) for least, unit in GRAMS if grams >= least)
    return f"{number(grams / scale)} {unit}"
