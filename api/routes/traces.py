"""Traces of runs: which runs have some, their report, their events, and one file for Perfetto."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field, create_model

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import Format, ListQuery, Page
from crosswind.api.routes.step_rows import INT32, TYPES, WINDOW_ROWS
from crosswind.api.tables.listing import Asked, Listing
from crosswind.api.wire import INT64, Id, refuse_unknown_query
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.answers.traces import TracedRun, TraceReport
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.metric import Column
from crosswind.data.schema.question import TRACED_NAMES
from crosswind.data.schema.run import Run
from crosswind.data.schema.traced import TRACE_EVENT
from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import traces_of_run

if TYPE_CHECKING:  # heavy
    import pyarrow as pa

router = APIRouter(prefix="/v1", tags=["traces"], dependencies=[Depends(refuse_unknown_query)])
NAMES_MAX = 1000
PERFETTO = "application/json"
_OF_RUN = """
from trace_event where run_id = $1 and ($2 is null or rank = $2)
    and ($3 is null or begin_ns >= $3) and ($4 is null or begin_ns < $4)
"""


class TracesPage(Page):
    """Part of the runs that have traces, those with the newest events first."""

    traces: list[TracedRun]


class EventsQuery(ListQuery):
    """The events to return: of a rank, that begin in a time on the rank's own clock."""

    rank: Annotated[int | None, Field(ge=0, lt=INT32, description="this rank alone")] = None
    from_ns: Annotated[int | None, Field(ge=-INT64, lt=INT64, description="that begin then or later")] = None
    to_ns: Annotated[int | None, Field(ge=-INT64, lt=INT64, description="that begin before")] = None


def _field(column: Column) -> tuple[object, object]:
    value = TYPES[column.dtype] if column.scale == 1.0 else float
    return (value | None, Field(description=column.description))


TraceEventRow = create_model(
    "TraceEventRow",
    __config__=ConfigDict(frozen=True),
    __doc__="One event of a trace; null where it does not say.",
    **{column.name: _field(column) for column in TRACE_EVENT.columns},  # type: ignore[call-overload]
)


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


@router.get("/runs/{run_id}/trace/events", **EVENTS.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_run_trace_events(
    run_id: Id, query: Annotated[EventsQuery, Query()], request: Request, store: StoreOf
) -> Response:
    """Return events of a run's traces, of all ranks or one, and of all time or a part."""
    asked = EVENTS.asked(query, request)
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    table = _events(store, run, query, asked)
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
    from crosswind.models.traces.clocks import clocks  # noqa: PLC0415
    from crosswind.models.traces.ranks import ranks_of  # noqa: PLC0415

    traces = traces_of_run(store, run_id)
    return perfetto_pieces(traces, ranks_of(traces), clocks(traces).offset_ns.tolist())


def _events(store: Store, run: Run, query: EventsQuery, asked: Asked) -> "pa.Table":
    """Return the part of the events that is asked for. Raises: NotFoundError for a run without traces."""
    if TRACE_EVENT.name not in store.lake.sets():
        raise NotFoundError(f"run {run.run_id} has no traces")
    descending = asked.part.descending
    names = ", ".join(f'"{name}"' for name in dict.fromkeys((*asked.names, *asked.listing.key)))
    behind = f"and (begin_ns, rank, number) {'<' if descending else '>'} ($5, $6, $7)" if asked.part.after else ""
    order = ", ".join(f"{name} {'desc' if descending else 'asc'}" for name in asked.listing.key)
    sql = f"select {names} {_OF_RUN} {behind} order by {order} limit {asked.part.limit}"  # noqa: S608 - our own names
    parameters = [run.run_id, query.rank, query.from_ns, query.to_ns, *(asked.part.after or ())]
    return store.lake.table(sql, parameters, within=time_of([run]))
