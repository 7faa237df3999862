"""Saved cohorts: selections of runs, their members, and how these differ from the others."""

import time
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response, status
from pydantic import BaseModel, Field, StringConstraints

from crosswind.api.dependencies import ClientOf, PrincipalOf, StoreOf
from crosswind.api.idempotency import RequestKeyOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, Name, RequestBody, View, refuse_unknown_query
from crosswind.client.cohorts import listed as listed_cohort
from crosswind.data.schema.answers.cohorts import CohortComparison, ListedCohort
from crosswind.data.schema.answers.runs import ListedRun
from crosswind.data.schema.moment import moment_ns
from crosswind.data.schema.run import RunState, new_ulid
from crosswind.data.schema.saved_cohort import MEMBERS_MAX, RunConditions, SavedCohort
from crosswind.data.store.cohorts import save_cohort
from crosswind.data.store.features import listed

router = APIRouter(prefix="/v1/cohorts", tags=["cohorts"], dependencies=[Depends(refuse_unknown_query)])


class ConditionsBody(RequestBody):
    """Conditions that all members meet, one at least; `from` and `to` are of the runs' start."""

    workload: Name | None = None
    system: Name | None = None
    state: Annotated[RunState | None, Field(strict=False)] = None
    job_id: Name | None = None
    verdict: Name | None = None
    from_: Annotated[Name | None, Field(alias="from", description="RFC 3339, a date, or -7d: from then on")] = None
    to: Annotated[Name | None, Field(description="the same: before then")] = None

    def conditions(self) -> RunConditions:
        """Return the conditions. Raises: InvalidInputError."""
        now_ns = time.time_ns()
        return RunConditions(
            *(self.workload, self.system, self.state, self.job_id, self.verdict),
            from_ns=None if self.from_ is None else moment_ns(self.from_, now_ns, field="conditions.from"),
            to_ns=None if self.to is None else moment_ns(self.to, now_ns, field="conditions.to"),
        )


class CohortRequest(RequestBody):
    """The selection to save: runs by their ids, or conditions."""

    name: Name
    note: Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")] = ""
    run_ids: Annotated[list[Name] | None, Field(min_length=1, max_length=MEMBERS_MAX)] = None
    conditions: ConditionsBody | None = None

    def cohort(self) -> SavedCohort:
        """Return the cohort, as new. Raises: InvalidInputError."""
        run_ids = None if self.run_ids is None else tuple(dict.fromkeys(self.run_ids))
        conditions = self.conditions.conditions() if self.conditions else None
        return SavedCohort(new_ulid(), self.name, time.time_ns(), run_ids, conditions, self.note)


class CohortPage(Page):
    """Part of the list of cohorts, newest first."""

    cohorts: list[ListedCohort]


class MemberPage(Page):
    """Part of a cohort's runs, newest first."""

    cohort_id: str
    runs: list[ListedRun]


class ShareCohortRequest(RequestBody):
    """The wish to share it, or no longer."""

    shared: bool = True


class DeletedCohortView(View):
    """The cohort that is no more."""

    deleted: str


class ComparisonQuery(BaseModel):
    """Things that are taken out before cohort and others are compared."""

    drift: Annotated[bool, Field(description="smooth drift in time counts for nothing")] = False


@router.post("", status_code=status.HTTP_201_CREATED)
def create_cohort(body: CohortRequest, store: StoreOf, response: Response, request_key: RequestKeyOf) -> ListedCohort:
    """Save a selection of runs."""
    saved = save_cohort(store, body.cohort(), request_key)
    response.headers["Location"] = f"/v1/cohorts/{saved.cohort_id}"
    return listed_cohort(saved)


COHORTS = Listing(CohortPage, "cohorts", ("-created_ns",), ("cohort_id",))
MEMBERS = Listing(MemberPage, "runs", ("-started_ns",), ("run_id",))


@router.get("", **COHORTS.route)
def list_cohorts(query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return saved cohorts, newest first."""
    asked = COHORTS.asked(query, request)
    with store.catalog.read() as session:
        return asked.answer(list(map(listed_cohort, session.cohorts.find(asked.part))))


@router.get("/{cohort_id}")
def get_cohort(cohort_id: Id, client: ClientOf) -> ListedCohort:
    """Return one saved cohort."""
    return client.cohorts.get(cohort_id)


@router.get("/{cohort_id}/runs", **MEMBERS.route)
def list_cohort_runs(cohort_id: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return its members as far as they are stored now, newest first."""
    asked = MEMBERS.asked(query, request)
    with store.catalog.read() as session:
        members = session.cohorts.members(session.cohorts.get(cohort_id), asked.part)
    return asked.answer(list(map(listed, members)), cohort_id=cohort_id)


@router.get("/{cohort_id}/comparison")
def compare_cohort(cohort_id: Id, query: Annotated[ComparisonQuery, Query()], client: ClientOf) -> CohortComparison:
    """Return every stored feature by how surely the cohort's runs differ in it from the others."""
    return client.cohorts.compare(cohort_id, drift=query.drift)


@router.post("/{cohort_id}:share")
def share_cohort(cohort_id: Id, body: ShareCohortRequest, client: ClientOf, principal: PrincipalOf) -> ListedCohort:
    """Let everybody see a cohort of one's own; of its runs all see those that they may see."""
    return replace(client.cohorts, who=str(principal)).share(cohort_id, shared=body.shared)


@router.post("/{cohort_id}:delete")
def delete_cohort(cohort_id: Id, client: ClientOf, principal: PrincipalOf) -> DeletedCohortView:
    """Delete a cohort of one's own; its runs stay."""
    replace(client.cohorts, who=str(principal)).delete(cohort_id)
    return DeletedCohortView(deleted=cohort_id)
