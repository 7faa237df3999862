"""Traces of runs: which runs have some, their report, their events, and one file for Perfetto."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import Format, ListQuery, Page
from crosswind.api.routes.step_rows import WINDOW_ROWS
from crosswind.api.routes.trace_rows import EventsQuery, TraceEventRow, events_of
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.client.stored_traces import NAMES_MAX
from crosswind.data.schema.answers.trace_difference import RunsDifference
from crosswind.data.schema.answers.traces import TracedRun, TraceReport
from crosswind.data.schema.question import TRACED_NAMES
from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import stream_of_run

router = APIRouter(prefix="/v1", tags=["traces"], dependencies=[Depends(refuse_unknown_query)])
PERFETTO = "application/json"


class TracesPage(Page):
    """Part of the runs that have traces, those with the newest events first."""

    traces: list[TracedRun]


class TraceEventPage(Page):
    """Part of a run's events, by their begin."""

    run_id: str
    events: list[TraceEventRow]


TRACES = Listing(TracesPage, "traces", ("-last_ns", "run_id"), ("run_id",))
EVENTS = Listing(TraceEventPage, "events", ("begin_ns",), ("begin_ns", "rank", "number"), rows_max=WINDOW_ROWS)


@router.get("/traces", **TRACES.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_traces(query: Annotated[ListQuery, Query()], request: Request, client: ClientOf) -> Response:
    """Return the runs that have traces."""
    asked = TRACES.asked(query, request)
    return asked.answer(asked.of_all(client.traced_runs(limit=None)))


@router.get("/runs/{run_id}/trace", dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def get_run_trace(
    run_id: Id,
    client: ClientOf,
    top: Annotated[int, Query(ge=1, le=NAMES_MAX, description="kernels and operators at most")] = TRACED_NAMES,
) -> TraceReport:
    """Return where the time of a run's traced ranks goes, and which of them the others wait for."""
    return client.trace(run_id, top=top)


@router.get("/runs/{run_id}/trace/difference")
def get_run_trace_difference(run_id: Id, other: Annotated[Id, Query(alias="with")], client: ClientOf) -> RunsDifference:
    """Return by what the steps of another run differ from this one's; without traces of both, by the probe's steps."""
    return client.trace_diff(run_id, other)


@router.get("/runs/{run_id}/trace/events", **EVENTS.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_run_trace_events(
    run_id: Id, query: Annotated[EventsQuery, Query()], request: Request, store: StoreOf
) -> Response:
    """Return events of a run's traces, of all ranks or one, and of all time or a part."""
    asked = EVENTS.asked(query, request)
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    table = events_of(store, run, query, asked)
    rows = table.slice(max(0, table.num_rows - 1)).to_pylist()
    if asked.form is Format.JSON:
        return asked.answer(table.to_pylist(), run_id=run_id)
    return asked.stream([table.select(asked.names).cast(asked.schema)], asked.next_behind(rows, table.num_rows))


@router.get(
    "/runs/{run_id}/trace/perfetto",
    response_class=StreamingResponse,
    responses={200: {"content": {PERFETTO: {"schema": {"type": "object"}}}, "description": "A trace for Perfetto."}},
)
def get_run_perfetto(run_id: Id, store: StoreOf) -> StreamingResponse:
    """Return all ranks on aligned clocks as one file that Perfetto opens: a process a rank."""
    headers = {"Content-Disposition": 'attachment; filename="trace.json"'}
    return StreamingResponse(_perfetto(store, run_id), media_type=PERFETTO, headers=headers)


def _perfetto(store: Store, run_id: str) -> Iterator[bytes]:
    from crosswind.data.traces.perfetto import perfetto_pieces  # noqa: PLC0415 - heavy
    from crosswind.models.traces.several.merged import Merged  # noqa: PLC0415

    merged = Merged.of(stream_of_run(store, run_id, every_capture=True))
    again = stream_of_run(store, run_id, every_capture=True)
    return perfetto_pieces(merged.on_one_clock(again), merged.clocks.ranks, merged.begin_ns)
