"""Runs with the times of their steps."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import StoreOf
from crosswind.api.paging import Page
from crosswind.api.routes.runs import BY_START, RunQuery, part_of
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import refuse_unknown_query
from crosswind.data.schema.answers.runs import RunOutcome
from crosswind.data.store.features import outcomes

router = APIRouter(prefix="/v1/run-outcomes", tags=["runs"], dependencies=[Depends(refuse_unknown_query)])


class OutcomePage(Page):
    """Part of the list of runs with their outcomes, newest first."""

    runs: list[RunOutcome]


OUTCOMES = Listing(OutcomePage, "runs", BY_START, ("run_id",))


@router.get("", **OUTCOMES.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_run_outcomes(query: Annotated[RunQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return runs with the times of their steps, newest first."""
    asked = OUTCOMES.asked(query, request)
    return asked.answer(outcomes(store, part_of(query, asked, store)))
