"""Explanations, computed once for as long as nothing new is stored."""

from collections.abc import Mapping, Sequence
from threading import Lock

from crosswind.data.catalog.catalog import Ingested
from crosswind.data.run import Run
from crosswind.data.store import Store
from crosswind.models.explain.explain import explain_runs
from crosswind.models.explain.explanation import Explanation

MOST = 5000  # explanations kept; each is some kilobytes
Contents = tuple[Ingested, int]  # what the store holds: an explanation may change with any run of its cohort


class RememberedExplanations:
    """Explains runs of one store, each once until something is ingested."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._contents: Contents | None = None
        self._known: dict[str, Explanation] = {}

    def __call__(self, store: Store, runs: Sequence[Run]) -> Mapping[str, Explanation]:
        """An explanation of every given run, by run id."""
        contents = _contents(store)
        known = self._held(contents)
        found = {run.run_id: known[run.run_id] for run in runs if run.run_id in known}
        missing = [run for run in runs if run.run_id not in found]
        fresh = explain_runs(store, missing) if missing else {}
        self._hold(contents, fresh)
        return {**found, **fresh}

    def _held(self, contents: Contents) -> dict[str, Explanation]:
        with self._lock:
            if contents != self._contents or len(self._known) > MOST:
                self._contents, self._known = contents, {}
            return dict(self._known)

    def _hold(self, contents: Contents, fresh: Mapping[str, Explanation]) -> None:
        with self._lock:
            if contents == self._contents:
                self._known.update(fresh)


def _contents(store: Store) -> Contents:
    with store.catalog.read() as session:
        return session.ingested(), session.runs.count()
