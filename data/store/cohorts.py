"""Saving of cohorts, once for each request."""

import time

from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.saved_cohort import SavedCohort
from crosswind.data.store.store import Store


def save_cohort(store: Store, cohort: SavedCohort, request: RequestKey | None = None) -> SavedCohort:
    """Store a cohort, or return the one that the same request made before.

    Raises: NotFoundError for runs that are not stored, or may not be seen; InvalidInputError for a key of another
    request.
    """
    with store.catalog.write() as session:
        if request and (made := session.requests.claim(request, time.time_ns())):
            return session.cohorts.get(made[0])
        stored = session.runs.stored(cohort.run_ids or ())
        if lacking := sorted(set(cohort.run_ids or ()).difference(stored)):
            raise NotFoundError(f"run_ids: run {lacking[0]!r:.80} is not in the catalog")
        session.cohorts.add(cohort)
        if request:
            session.requests.settle(request, [cohort.cohort_id])
        return session.cohorts.get(cohort.cohort_id)
