"""Runs with the times of their steps."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.dependencies import StoreOf
from crosswind.api.paging import Page, next_url
from crosswind.api.routes.runs import RunQuery, part_of
from crosswind.api.wire import refuse_unknown_query
from crosswind.data.schema.answers.runs import RunOutcome
from crosswind.data.store.features import outcomes

router = APIRouter(prefix="/v1/run-outcomes", tags=["runs"], dependencies=[Depends(refuse_unknown_query)])


class OutcomePage(Page):
    """Part of the list of runs with their outcomes, newest first."""

    runs: list[RunOutcome]


@router.get("")
def list_run_outcomes(query: Annotated[RunQuery, Query()], request: Request, store: StoreOf) -> OutcomePage:
    """Return runs with the times of their steps, newest first."""
    runs, cursor = part_of(query, store)
    return OutcomePage(runs=list(outcomes(store, runs)), next=cursor, next_url=next_url(request, cursor))
