"""The Trace page: where the time of a run's traced ranks goes, and what it would take without a cause."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.client.run_names import run_named
from crosswind.client.stored_traces import difference_from, report_and_replays
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.traces.arrivals import arrival_matrix
from crosswind.dashboards.figures.traces.differing import waterfall_from
from crosswind.dashboards.figures.traces.exchanges import exchanges
from crosswind.dashboards.figures.traces.longest import longest_kernels, longest_operators
from crosswind.dashboards.figures.traces.path import path_shares
from crosswind.dashboards.figures.traces.pop import EarlierPop, pop_table
from crosswind.dashboards.figures.traces.replays import replays
from crosswind.dashboards.figures.traces.times import times_of_ranks
from crosswind.dashboards.figures.traces.turns import steps_of_ranks, waits_of_ranks
from crosswind.dashboards.pages.page import RUNS, Page, PageQuery, Place
from crosswind.dashboards.pages.runs.stored_traces import EARLIER, earlier_pops, traced_peers
from crosswind.dashboards.queries import peers_of
from crosswind.data.schema.answers.trace_difference import RunsDifference
from crosswind.data.schema.answers.traces import NOTED, TracedRun, TraceReport, TraceWhatIf
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.store.traced_runs import traced_among

OFFERED = 50  # runs to differ from, in the list of the page
RECORD = "crosswind run --trace auto -- torchrun --nproc-per-node 2 train.py"


@dataclass(frozen=True)
class TraceView:
    """The page's contents: the traces of a stored run, None where it has none, or of files, which have no run."""

    run: Run | None
    report: TraceReport | None
    without: tuple[TraceWhatIf, ...] = ()
    earlier: tuple[EarlierPop, ...] = ()
    difference: RunsDifference | None = None  # from the run `compared` to this one
    compared: str = ""
    is_chosen: bool = False  # by the reader; else it is the newest earlier one
    comparable: tuple[str, ...] = ()  # other runs of the cohort that have traces, the newest first
    charts: tuple[Chart, ...] = ()
    next_place: Place | None = None

    is_empty = False

    @property
    def title(self) -> str:
        """The page's name, for the browser's tab."""
        return "Traces" if self.run is None else f"Trace of {self.run.workload} {self.run.run_id}"

    @property
    def late_rank(self) -> int | None:
        """Return the rank that the verdict says the others wait for; None without one."""
        if self.report is None or self.report.slowest_rank is None:
            return None
        caused = max(rank.caused_ns for rank in self.report.ranks) / (len(self.report.ranks) - 1)
        return self.report.slowest_rank if caused >= NOTED * self.report.span_ns else None

    @property
    def steps(self) -> int:
        """Return the number of steps that the traces mark."""
        return 0 if self.report is None else max((len(rank.step_ns) for rank in self.report.ranks), default=0)


def view(client: Local, query: PageQuery) -> TraceView:
    """Return the traces of one run. Raises: NotFoundError, InvalidInputError for a run that it cannot differ from."""
    with client.store.catalog.read() as session:
        run = session.runs.get(query.run_id)
        traced = traced_among(client.store, [run]).get(run.run_id)
        peers = [] if traced is None else peers_of(session, run)
    if traced is None:
        return TraceView(run, None)
    chosen = _chosen(client, query, run)
    report, without = client.compute(client.store, report_and_replays, traced).value
    comparable = traced_peers(client, peers)
    before = [one for peer, one in comparable if (peer.started_ns or 0) < (run.started_ns or 0)]
    earlier = earlier_pops(client, before[:EARLIER], report.pop[0].over) if report.pop else ()
    other = chosen or next(iter(before), None)
    difference = None if other is None else client.compute(client.store, difference_from, other, traced).value
    way = None if difference is None or other is None else waterfall_from(difference, other.run_id)
    return TraceView(
        run,
        report,
        without,
        earlier,
        difference,
        "" if other is None else other.run_id,
        is_chosen=chosen is not None,
        comparable=tuple(one.run_id for _, one in comparable[:OFFERED]),
        charts=(*charts_of(report, without, earlier), *([] if way is None else [way])),
    )


def _chosen(client: Local, query: PageQuery, run: Run) -> TracedRun | None:
    """Return the run that the reader chose; None without one. Raises: NotFoundError, InvalidInputError."""
    name = query.word("with")
    if name is None:
        return None
    other = run_named(client, name).run_id
    with client.store.catalog.read() as session:
        traced = traced_among(client.store, [session.runs.get(other)]).get(other)
    if traced is None or other == run.run_id:
        raise InvalidInputError(f"query parameter with={name[:60]!r}: expected another run, which has traces")
    return traced


def charts_of(
    report: TraceReport, without: Sequence[TraceWhatIf], earlier: Sequence[EarlierPop] = ()
) -> tuple[Chart, ...]:
    """Return the figures that there is something for."""
    ranks = report.ranks
    charts: Sequence[Chart | None] = (
        times_of_ranks(ranks),
        arrival_matrix(ranks),
        waits_of_ranks(ranks),
        exchanges(report.collectives, len(ranks)),
        replays(without),
        path_shares(report.critical_path),
        longest_kernels(report.kernels),
        longest_operators(report.operators),
        pop_table(report.pop, earlier),
        steps_of_ranks(ranks),
    )
    return tuple(chart for chart in charts if chart is not None)


PAGE = Page("trace", "/runs/{run_id}/trace", "trace.html", view, RUNS, table="report.ranks", fill=RECORD)
