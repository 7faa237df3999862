"""The Run page: the causes of one run's time."""

import hashlib
from dataclasses import dataclass
from urllib.parse import urlencode

import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.phases import phase_stack
from crosswind.dashboards.figures.ranks import rank_heat_map
from crosswind.dashboards.figures.steps import step_ribbon
from crosswind.dashboards.figures.waterfall import waterfall
from crosswind.dashboards.pages.page import RUNS, Page, PageQuery, Place
from crosswind.dashboards.queries import NodeSource, cohort_band, node_samples, peers_of
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation
from crosswind.data.schema.run import Rank, Run, cohort_key
from crosswind.data.store.features import WARM_UP_STEPS, steps_of
from crosswind.data.store.store import Store


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
class RunPageView:
    """The page's contents."""

    run: Run
    ranks: tuple[Rank, ...]
    explanation: Explanation
    coverage: Coverage
    cohort_id: str
    leads: tuple[Lead, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    @property
    def title(self) -> str:
        """The page's name, for the browser's tab."""
        return f"{self.run.workload} {self.run.run_id}"

    @property
    def is_judged(self) -> bool:
        """Return whether the explanation has numbers."""
        return self.explanation.excess is not None


def view(client: Local, query: PageQuery) -> RunPageView:
    """Return one run with its explanation and evidence. Raises: NotFoundError."""
    with client.store.catalog.read() as session:
        run = session.runs.get(query.run_id)
        ranks = tuple(session.runs.ranks(run.run_id))
        peers = peers_of(session, run)
    steps = steps_of(client.store, run.run_id)
    explanation = client.explain_runs(client.store, [run])[run.run_id]
    return RunPageView(
        run=run,
        ranks=ranks,
        explanation=explanation,
        coverage=_coverage(client.store, run, ranks, steps),
        cohort_id=cohort_id(cohort_key(run)),
        leads=_leads(run, explanation),
        charts=_charts(client.store, explanation, steps, peers),
    )


PAGE = Page("run", "/runs/{run_id}", "run.html", view, RUNS, table="explanation.shares")


def cohort_id(cohort: str) -> str:
    """Return a short name of a cohort, for addresses."""
    return hashlib.sha256(cohort.encode()).hexdigest()[:12]


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


def _coverage(store: Store, run: Run, ranks: tuple[Rank, ...], steps: pd.DataFrame) -> Coverage:
    recorded = steps["step"].nunique()
    return Coverage(
        steps=recorded,
        warm_up_steps=int(steps.loc[steps["step"] < WARM_UP_STEPS, "step"].nunique()),
        ranks_expected=run.world_size or len(ranks) or None,
        ranks_with_steps=steps["rank"].nunique(),
        node_sources=node_samples(store, run),
    )


def _charts(store: Store, explanation: Explanation, steps: pd.DataFrame, peers: list[Run]) -> tuple[Chart, ...]:
    charts: list[Chart | None] = []
    if explanation.excess is not None:
        charts.append(waterfall(explanation))
    compared = steps[steps["step"] >= WARM_UP_STEPS]
    if not compared.empty:
        band, cohort_runs = cohort_band(store, peers)
        charts.append(step_ribbon(compared, band, cohort_runs=cohort_runs))
        charts += [rank_heat_map(compared), phase_stack(compared)]
    return tuple(chart for chart in charts if chart is not None)
