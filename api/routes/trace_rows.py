"""The events of a run's traces that a request asks for."""

from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field, create_model

from crosswind.api.paging import ListQuery
from crosswind.api.routes.step_rows import INT32, TYPES
from crosswind.api.tables.listing import Asked
from crosswind.api.wire import INT64
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.metric import Column
from crosswind.data.schema.run import Run
from crosswind.data.schema.traced import TRACE_EVENT
from crosswind.data.store.store import Store

if TYPE_CHECKING:  # heavy
    import pyarrow as pa

_OF_RUN = """
from trace_event where run_id = $1 and ($2 is null or rank = $2)
    and ($3 is null or begin_ns >= $3) and ($4 is null or begin_ns < $4)
"""


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


def events_of(store: Store, run: Run, query: EventsQuery, asked: Asked) -> "pa.Table":
    """Return the part of the events that is asked for. Raises: NotFoundError for a run without traces."""
    if TRACE_EVENT.name not in store.lake.sets():
        raise NotFoundError(f"run {run.run_id} has no traces")
    descending = asked.part.descending
    names = ", ".join(f'"{name}"' for name in dict.fromkeys((*asked.names, *asked.listing.key)))
    behind = f"and (begin_ns, rank, number) {'<' if descending else '>'} ($5, $6, $7)" if asked.part.after else ""
    order = ", ".join(f"{name} {'desc' if descending else 'asc'}" for name in asked.listing.key)
    sql = f"select {names} {_OF_RUN} {behind} order by {order} limit {asked.part.limit}"
    parameters = [run.run_id, query.rank, query.from_ns, query.to_ns, *(asked.part.after or ())]
    return store.lake.table(sql, parameters, within=time_of([run]))
