"""Health of the server: whether it runs and can answer, and its metrics."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from crosswind.api.dependencies import StoreOf, WholeStoreOf
from crosswind.api.edge.edge import Edge
from crosswind.api.readiness import Readiness
from crosswind.api.telemetry import Family, Point, RequestCounts, exposition
from crosswind.data.store.store import Store

router = APIRouter(tags=["health"])
NAMED = 50  # damaged files


class Health(BaseModel):
    """State of the server; any answer shows that it runs."""

    status: str


class Coverage(BaseModel):
    """The lake's files that cannot be read: answers are without their rows."""

    damaged: Annotated[int, Field(description="how many there are")]
    files: Annotated[list[str], Field(description="the first of their names, below the folder `lake`")]


class Ready(Health):
    """State of the store."""

    coverage: Coverage


@router.get("/healthz")
async def get_health() -> Health:
    """Answer while the server runs."""
    return Health(status="ok")


@router.get("/readyz")
def get_readiness(request: Request, store: WholeStoreOf) -> Ready:
    """Answer while the store can be read and written."""
    ready: Readiness = request.app.state.readiness
    ready.check()
    damaged = _damaged(store)
    return Ready(status="ready", coverage=Coverage(damaged=len(damaged), files=damaged[:NAMED]))


@router.get("/metrics", response_class=PlainTextResponse)
def get_metrics(request: Request, store: StoreOf) -> PlainTextResponse:
    """Return the server's metrics, in Prometheus' text format 0.0.4."""
    counts: RequestCounts = request.app.state.request_counts
    families = [*counts.families(), *edge_families(request.app.state.edge), *stored_families(store)]
    return PlainTextResponse(exposition(families), media_type="text/plain; version=0.0.4; charset=utf-8")


def _damaged(store: Store) -> list[str]:
    return store.lake.skipped.names if store.lake.skipped else []


def edge_families(edge: Edge) -> list[Family]:
    """Return the connections, and those that were refused before any route saw a request, as metrics."""
    refused = [Point(count, {"kind": kind}) for kind, count in edge.refusals.items()]
    return [
        Family("crosswind_http_connections", "gauge", "Connections within the limits.", [Point(edge.connection_count)]),
        Family("crosswind_http_refused_total", "counter", "Refusals before any route, by kind.", refused),
    ]


def stored_families(store: Store) -> list[Family]:
    """Return the amounts stored, as metrics."""
    with store.catalog.read() as session:
        runs, ingested = session.runs.count(), session.ingested()
    return [
        Family("crosswind_runs", "gauge", "Runs in the catalog.", [Point(runs)]),
        Family("crosswind_lake_damaged_files", "gauge", "Files passed over.", [Point(len(_damaged(store)))]),
        Family("crosswind_ingest_batches_total", "counter", "Batches taken in.", [Point(ingested.batches)]),
        Family("crosswind_ingest_rows_total", "counter", "Rows taken in with them.", [Point(ingested.rows)]),
        Family("crosswind_ingest_skipped_total", "counter", "Broken lines skipped in them.", [Point(ingested.skipped)]),
    ]
