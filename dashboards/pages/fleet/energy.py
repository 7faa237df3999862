"""The Energy page: joules by workload, measured and estimated apart, and the best trades of time for energy."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.nodes.frontier import frontier
from crosswind.dashboards.pages.page import FLEET, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, quantity
from crosswind.data.schema.answers.energy import MeterScope
from crosswind.data.schema.carbon import JOULES_PER_KILOWATT_HOUR
from crosswind.models.reports.energy import (
    EnergyPoint,
    FleetEnergy,
    IdleRun,
    WorkloadEnergy,
    comparable,
    configurations,
    fleet_energy,
)

SHOWN, MOST_SHOWN = 25, 500
METERS = {
    MeterScope.NODE: "measured of whole nodes",
    MeterScope.ACCOUNTED: "measured by the scheduler",
    MeterScope.RECORDED: "as their records state it",
    MeterScope.CHIPS: "measured of processors and accelerators",
    MeterScope.ACCELERATORS: "measured of accelerators alone",
    MeterScope.PROCESSORS: "measured of processors alone",
    None: "estimated by the power limits of the accelerators",
}


@dataclass(frozen=True)
class EnergyView:
    """The page's contents; `front` are configurations of `workload`, whose joules are of one kind, `meter`."""

    sentence: str
    scope: Scope
    period: str
    looked_at: int
    workloads: tuple[WorkloadEnergy, ...]
    workload: str | None
    meter: str
    front: tuple[EnergyPoint, ...]
    idle: tuple[IdleRun, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Energy"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return self.workload is None


def view(client: Local, query: PageQuery) -> EnergyView:
    """Return the energy of the newest runs. Raises: InvalidInputError."""
    days, limit = query.days, query.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(client, query)
    energy = client.compute(client.store, fleet_energy, scope.system, scope.workload, days)
    drawn = next((row.workload for row in energy.workloads if row.measured_runs or row.estimated_runs), None)
    kind, runs = comparable(energy.runs, drawn) if drawn else (None, ())
    points = configurations(runs)
    chart = frontier(drawn or "", METERS[kind], runs, points)
    return EnergyView(
        sentence=_sentence(energy),
        scope=scope,
        period=energy.period.words,
        looked_at=energy.looked_at,
        workloads=energy.workloads[:limit],
        workload=drawn,
        meter=METERS[kind],
        front=tuple(point for point in points if point.on_front)[:limit],
        idle=energy.idle[:limit],
        charts=() if chart is None else (chart,),
    )


PAGE = Page(
    "energy",
    "/energy",
    "energy.html",
    view,
    FLEET,
    label="Energy",
    table="front",
    fill="crosswind doctor",
    hint="See which meters work on your nodes",
)


def _sentence(energy: FleetEnergy) -> str:
    runs, measured = count(energy.looked_at, "run"), [row for row in energy.workloads if row.measured_runs]
    estimated = [row for row in energy.workloads if row.estimated_runs]
    if not measured and not estimated:
        return f"No meter covered any of {runs}." if energy.looked_at else "No ended run is in this time."
    if not measured:
        guess = _hours(sum(row.estimated_joules for row in estimated))
        return f"No run was metered; {_total(estimated, 'estimated_runs')} took about {guess} by data sheets."
    joules, first = sum(row.measured_joules for row in measured), max(measured, key=lambda row: row.measured_joules)
    most = f", most of it {first.workload}" if len(measured) > 1 and first.measured_joules > joules / 2 else ""
    return f"{_total(measured, 'measured_runs')} of {runs} took {_hours(joules)} by their meters{most}."


def _total(rows: Sequence[WorkloadEnergy], name: str) -> int:
    return sum(getattr(row, name) for row in rows)


def _hours(joules: float) -> str:
    """Return joules in the unit that people pay for, where there are many."""
    hours = joules / JOULES_PER_KILOWATT_HOUR
    return quantity(1000 * hours, "Wh") if hours >= 1e-3 else quantity(joules, "J")
