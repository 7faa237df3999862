"""The report of traces that are in no store, as one file without requests: the Trace page without a run."""

from collections.abc import Sequence

from crosswind.dashboards.pages.render import Address
from crosswind.dashboards.pages.report import report
from crosswind.dashboards.pages.runs.trace import PAGE, TraceView, charts_of
from crosswind.data.schema.answers.traces import TraceReport, TraceWhatIf


def trace_page(answer: TraceReport, without: Sequence[TraceWhatIf] = ()) -> str:
    """Return the page of a report and of the replays without a cause each."""
    view = TraceView(None, answer, tuple(without), charts=charts_of(answer, without))
    return report(PAGE, view, Address("./", "/trace"))
