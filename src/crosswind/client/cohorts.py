"""Saved cohorts of runs: in a store of this machine, or at a server."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Protocol

from crosswind.client.http import segment
from crosswind.data.schema import answers
from crosswind.data.schema.access import this_person
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.saved_cohort import RunConditions, SavedCohort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosswind.client.answers import Answers
    from crosswind.client.compute import Compute
    from crosswind.data.schema.answers.cohorts import CohortComparison, ListedCohort
    from crosswind.data.schema.answers.runs import ListedRun
    from crosswind.data.store.store import Store

LISTED = 50
PATH = "/v1/cohorts"


class Cohorts(Protocol):
    """Saved selections of runs; raises as `Client` does."""

    def create(
        self,
        name: str,
        run_ids: Sequence[str] | None = None,
        conditions: RunConditions | None = None,
        *,
        note: str = "",
    ) -> ListedCohort:
        """Save a cohort of these runs, or of those that meet the conditions, also of those that come later."""
        ...

    def list(self, *, limit: int = LISTED) -> tuple[ListedCohort, ...]:
        """The newest cohorts, newest first."""
        ...

    def get(self, cohort_id: str) -> ListedCohort:
        """One cohort."""
        ...

    def runs(self, cohort_id: str, *, limit: int = LISTED) -> tuple[ListedRun, ...]:
        """The newest members of a cohort, newest first."""
        ...

    def compare(self, cohort_id: str, *, drift: bool = False) -> CohortComparison:
        """The difference of its runs from the others; drift: smooth drift in time counts for nothing."""
        ...

    def share(self, cohort_id: str, *, shared: bool) -> ListedCohort:
        """Let everybody see a cohort of one's own, or no longer."""
        ...

    def delete(self, cohort_id: str) -> None:
        """Delete a cohort of one's own; its runs stay."""
        ...


@dataclass(frozen=True)
class LocalCohorts:
    """The `Cohorts` of a store, for whoever it is opened for; `who` is what the audit calls them."""

    store: Store
    compute: Compute
    who: str = field(default_factory=this_person)

    def create(
        self,
        name: str,
        run_ids: Sequence[str] | None = None,
        conditions: RunConditions | None = None,
        *,
        note: str = "",
    ) -> ListedCohort:
        """As `Cohorts.create`."""
        ids = None if run_ids is None else tuple(dict.fromkeys(run_ids))
        return self.add(SavedCohort(new_ulid(), name, time.time_ns(), ids, conditions, note))

    def add(self, cohort: SavedCohort) -> ListedCohort:
        """Save a cohort. Raises: NotFoundError for one of a run that is not stored."""
        from crosswind.data.store.cohorts import save_cohort  # noqa: PLC0415 - heavy

        return listed(save_cohort(self.store, cohort))

    def list(self, *, limit: int = LISTED) -> tuple[ListedCohort, ...]:
        """As `Cohorts.list`."""
        with self.store.catalog.read() as session:
            return tuple(map(listed, session.cohorts.find(Part(limit, descending=True))))

    def get(self, cohort_id: str) -> ListedCohort:
        """As `Cohorts.get`."""
        with self.store.catalog.read() as session:
            return listed(session.cohorts.get(cohort_id))

    def runs(self, cohort_id: str, *, limit: int = LISTED) -> tuple[ListedRun, ...]:
        """As `Cohorts.runs`."""
        from crosswind.data.store import features  # noqa: PLC0415 - heavy

        with self.store.catalog.read() as session:
            members = session.cohorts.members(session.cohorts.get(cohort_id), Part(limit, descending=True))
        return tuple(map(features.listed, members))

    def compare(self, cohort_id: str, *, drift: bool = False) -> CohortComparison:
        """As `Cohorts.compare`."""
        from crosswind.models.cohorts.comparison import compare_cohort  # noqa: PLC0415 - heavy

        with self.store.catalog.read() as session:
            cohort = session.cohorts.get(cohort_id)
        return self.compute(self.store, compare_cohort, cohort, drift=drift)

    def share(self, cohort_id: str, *, shared: bool) -> ListedCohort:
        """As `Cohorts.share`."""
        with self.store.catalog.write() as session:
            session.audit.add(self.who, "share cohort" if shared else "unshare cohort", cohort_id)
            return listed(session.cohorts.share(cohort_id, shared=shared))

    def delete(self, cohort_id: str) -> None:
        """As `Cohorts.delete`."""
        with self.store.catalog.write() as session:
            session.audit.add(self.who, "delete cohort", cohort_id)
            session.cohorts.remove(cohort_id)


@dataclass(frozen=True)
class RemoteCohorts:
    """The `Cohorts` of a server."""

    answers: Answers

    def create(
        self,
        name: str,
        run_ids: Sequence[str] | None = None,
        conditions: RunConditions | None = None,
        *,
        note: str = "",
    ) -> ListedCohort:
        """As POST /v1/cohorts."""
        body = {"name": name, "note": note, "run_ids": None if run_ids is None else list(dict.fromkeys(run_ids))}
        return self.answers.post(
            answers.cohorts.ListedCohort, PATH, {**body, "conditions": conditions and _sent(conditions)}
        )

    def list(self, *, limit: int = LISTED) -> tuple[ListedCohort, ...]:
        """As GET /v1/cohorts."""
        return self.answers.rows(answers.cohorts.ListedCohort, PATH, {}, limit)

    def get(self, cohort_id: str) -> ListedCohort:
        """As GET /v1/cohorts/{cohort_id}."""
        return self.answers.get(answers.cohorts.ListedCohort, _path(cohort_id))

    def runs(self, cohort_id: str, *, limit: int = LISTED) -> tuple[ListedRun, ...]:
        """As GET /v1/cohorts/{cohort_id}/runs."""
        return self.answers.rows(answers.runs.ListedRun, f"{_path(cohort_id)}/runs", {}, limit)

    def compare(self, cohort_id: str, *, drift: bool = False) -> CohortComparison:
        """As GET /v1/cohorts/{cohort_id}/comparison."""
        path = f"{_path(cohort_id)}/comparison"
        return self.answers.get(answers.cohorts.CohortComparison, path, drift="true" if drift else None)

    def share(self, cohort_id: str, *, shared: bool) -> ListedCohort:
        """As POST /v1/cohorts/{cohort_id}:share."""
        return self.answers.post(answers.cohorts.ListedCohort, f"{_path(cohort_id)}:share", {"shared": shared})

    def delete(self, cohort_id: str) -> None:
        """As POST /v1/cohorts/{cohort_id}:delete."""
        self.answers.server.post(f"{_path(cohort_id)}:delete", {})


def listed(cohort: SavedCohort) -> ListedCohort:
    """Return a cohort as it is shown."""
    names = ("cohort_id", "name", "note", "created_ns", "owner", "shared", "conditions")
    return answers.cohorts.ListedCohort(**{name: getattr(cohort, name) for name in names})


def _path(cohort_id: str) -> str:
    return f"{PATH}/{segment(cohort_id)}"


def _sent(conditions: RunConditions) -> dict[str, object]:
    given = {name: value for name, value in asdict(conditions).items() if value is not None}
    times = {name[:-3]: rfc3339(given.pop(name)) for name in ("from_ns", "to_ns") if name in given}
    return {**given, **times}
