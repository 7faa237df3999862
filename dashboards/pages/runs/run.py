"""The Run page: the causes of one run's time."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.phases import phase_stack
from crosswind.dashboards.figures.ranks import rank_heat_map
from crosswind.dashboards.figures.run.course import run_course
from crosswind.dashboards.figures.run.strips import NodeStrips
from crosswind.dashboards.figures.run.waits import wait_map
from crosswind.dashboards.figures.steps import step_ribbon
from crosswind.dashboards.figures.waterfall import waterfall
from crosswind.dashboards.pages.page import RUN, RUNS, Page, PageQuery, Place
from crosswind.dashboards.pages.runs.differences import FactDifference
from crosswind.dashboards.pages.runs.node_strips import axis_of, node_strips
from crosswind.dashboards.pages.runs.recorded import Recorded, recorded
from crosswind.dashboards.pages.runs.recorded_steps import RecordedSteps, recorded_steps
from crosswind.dashboards.pages.runs.unusual import unusual
from crosswind.dashboards.queries import NodeSource, cohort_band, peers_of
from crosswind.data.schema.answers.energy import EnergyForecast, MeasuredEnergy
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Rank, Run, cohort_digest
from crosswind.data.store.features import WARM_UP_STEPS

ONLY_STEPS, STEP_DIGITS = "steps", 15


@dataclass(frozen=True)
class Coverage:
    """The recorded part of the run."""

    steps: int
    warm_up_steps: int
    ranks_expected: int | None
    ranks_with_steps: int
    node_sources: tuple[NodeSource, ...]

    @property
    def has_all_ranks(self) -> bool:
        """Return whether every rank of the run recorded steps."""
        return self.ranks_expected is not None and self.ranks_with_steps >= self.ranks_expected


@dataclass(frozen=True)
class Lead:
    """A page about many runs and its question; `is_of_cause`: it is about the named cause."""

    address: str
    question: str
    is_of_cause: bool


STRAGGLERS, NEIGHBOURS, REGRESSIONS, CHECKS = "stragglers", "interference", "regressions", "checks"
LEADS = {  # cause -> the page with more about it
    **dict.fromkeys(("slow_node", "slow_compute", "low_clock", "heat_throttling", "power_cap"), STRAGGLERS),
    **dict.fromkeys(("cpu_contention", "memory_traffic", "neighbour_traffic", "congestion"), NEIGHBOURS),
    **dict.fromkeys(("network", "link_rate", "packet_loss", "slow_storage"), CHECKS),
    "software_change": REGRESSIONS,
}


@dataclass(frozen=True)
class Shown:
    """The steps that the figures of steps are about, both included; None: to the run's begin or end."""

    first: int | None
    last: int | None

    @property
    def is_part(self) -> bool:
        """Return whether these are not all steps."""
        return self.first is not None or self.last is not None


@dataclass(frozen=True)
class RunPageView:
    """The page's contents; with `is_only_steps` the figures of steps alone, to put into a page that is there."""

    run: Run
    ranks: tuple[Rank, ...]
    explanation: Explanation
    coverage: Coverage | None
    cohort_id: str
    shown: Shown
    differences: tuple[FactDifference, ...]
    peers: int
    energy: MeasuredEnergy | None
    estimated_energy: EnergyForecast | None
    leads: tuple[Lead, ...]
    charts: tuple[Chart, ...]
    is_only_steps: bool = False
    next_place: Place | None = None

    is_empty = False

    @property
    def title(self) -> str:
        """The page's name, for the browser's tab."""
        return f"{self.run.workload} {self.run.run_id}"

    @property
    def is_judged(self) -> bool:
        """Return whether the explanation has numbers."""
        return self.explanation.excess is not None


def view(client: Local, query: PageQuery) -> RunPageView:
    """Return one run with its explanation and evidence. Raises: NotFoundError, InvalidInputError."""
    shown = shown_steps(query)
    is_only_steps = query.choice("only", (ONLY_STEPS,)) is not None
    with client.store.catalog.read() as session:
        run = session.runs.get(query.run_id)
        ranks = tuple(session.ranks.of(run.run_id))
        peers = [] if is_only_steps else peers_of(session, run)
    explanation = client.explain_runs(client.store, [run])[run.run_id]
    asked = _Asked(client, run, ranks, explanation, shown)
    whole = None if is_only_steps else asked.recorded()
    energy = None if whole is None else whole.energy
    return RunPageView(
        run=run,
        ranks=ranks,
        explanation=explanation,
        coverage=None if whole is None else _coverage(run, ranks, whole),
        cohort_id=cohort_digest(run),
        shown=shown,
        differences=unusual(run, peers),
        peers=len(peers),
        energy=energy if isinstance(energy, MeasuredEnergy) else None,
        estimated_energy=energy if isinstance(energy, EnergyForecast) else None,
        leads=_leads(run, explanation),
        charts=asked.of_steps() if whole is None else asked.charts(whole),
        is_only_steps=is_only_steps,
    )


def shown_steps(query: PageQuery) -> Shown:
    """Return the steps of an address. Raises: InvalidInputError."""
    first, last = (_step(query, name) for name in ("from_step", "to_step"))
    if first is not None and last is not None and first > last:
        raise InvalidInputError(f"query parameter to_step={last}: expected from_step, {first}, or more")
    return Shown(first, last)


def _step(query: PageQuery, name: str) -> int | None:
    value = query.word(name)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > STEP_DIGITS:
        raise InvalidInputError(f"query parameter {name}={value[:60]!r}: expected the number of a step, from 0")
    return int(value)


PAGE = Page("run", "/runs/{run_id}", "run.html", view, RUNS, table="explanation.shares", fill=RUN)


def _leads(run: Run, explanation: Explanation) -> tuple[Lead, ...]:
    """Return the pages about all runs, the one of the run's cause first."""
    of_runs = urlencode({"system": run.system, "workload": run.workload})
    pages = (
        (STRAGGLERS, urlencode({"system": run.system}), "which nodes are slower than their peers"),
        (NEIGHBOURS, of_runs, "which neighbours slow runs of this workload had"),
        (REGRESSIONS, of_runs, "when the workload's time last changed"),
        (CHECKS, urlencode({"system": run.system}), "what checks of the nodes measured before jobs"),
    )
    named = LEADS.get(explanation.cause or "")
    if explanation.cause == UNKNOWN and explanation.culprit_rank is not None:
        named = STRAGGLERS
    leads = [Lead(f"{page}?{query}", question, page == named) for page, query, question in pages]
    return tuple(sorted(leads, key=lambda lead: not lead.is_of_cause))


def _coverage(run: Run, ranks: tuple[Rank, ...], whole: Recorded) -> Coverage:
    numbers = whole.steps.slowest["step"]
    return Coverage(
        steps=len(numbers),
        warm_up_steps=int((numbers < WARM_UP_STEPS).sum()),
        ranks_expected=run.world_size or len(ranks) or None,
        ranks_with_steps=len(whole.steps.ranks),
        node_sources=whole.node_sources,
    )


@dataclass(frozen=True)
class _Asked:
    """A run, and what its figures need."""

    client: Local
    run: Run
    ranks: tuple[Rank, ...]
    explanation: Explanation
    shown: Shown

    def recorded(self) -> Recorded:
        """Return all that was recorded of the run."""
        return self.client.compute(self.client.store, recorded, self.run.run_id, self._node)

    def charts(self, whole: Recorded) -> tuple[Chart, ...]:
        """Return every figure of the run, the figures of steps about those that are shown."""
        steps = whole.steps
        first = None if self.explanation.excess is None else waterfall(self.explanation)
        phases = phase_stack(steps.ranks if not steps.compared.empty else steps.ranks[:0])
        rest = (phases, run_course(self.run, self.ranks, steps.slowest), wait_map(steps.edges))
        of_steps = self.of_steps() if self.shown.is_part else self._drawn(steps, whole.strips)
        return (*_there(first), *of_steps, *_there(*rest))

    def of_steps(self) -> tuple[Chart, ...]:
        """Return the figures of the steps that are shown: the ribbon, the nodes' strips and the ranks."""
        steps = recorded_steps(self.client.store, self.run, self.shown.first, self.shown.last)
        return self._drawn(steps, node_strips(self.client, self.run, axis_of(self.run, steps.compared), self._node))

    def _drawn(self, steps: RecordedSteps, strips: NodeStrips | None) -> tuple[Chart, ...]:
        slowest = steps.compared
        strips = None if strips is None else replace(strips, mark=self._mark(slowest))
        if slowest.empty:
            return _there(strips)
        numbers = int(slowest["step"].iloc[0]), int(slowest["step"].iloc[-1])
        cohort = self.client.compute(self.client.store, cohort_band, self.run.run_id)
        band = cohort.steps[cohort.steps["step"].between(*numbers)]
        change = None if self._mark(slowest) is None else self.explanation.change
        ribbon = step_ribbon(slowest, band, cohort_runs=cohort.runs, change=change)
        waited = rank_heat_map(
            *(steps.ranks, steps.cells, steps.means), first_step=steps.first_step, steps_a_cell=steps.steps_a_cell
        )
        return _there(ribbon, strips, waited)

    @property
    def _node(self) -> str | None:
        """The culprit's node; None where no node stands out."""
        if self.explanation.culprit_node is not None:
            return self.explanation.culprit_node
        lag = self.explanation.lag
        rank = self.explanation.culprit_rank if lag is None else lag.rank
        return next((one.node for one in self.ranks if one.rank == rank), None)

    def _mark(self, slowest: pd.DataFrame) -> int | None:
        """Return the step from which on the run was slow, if it is among those shown."""
        change = self.explanation.change
        if change is None or slowest.empty:
            return None
        is_shown = slowest["step"].iloc[0] <= change.first_step <= slowest["step"].iloc[-1]
        return change.first_step if is_shown else None


def _there(*charts: Chart | None) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart is not None)
