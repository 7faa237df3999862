"""The system and workload that a page about many runs is about, and the others to choose from."""

from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PageQuery
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.run import RunState

NEWEST = 500  # runs whose systems and workloads can be chosen


@dataclass(frozen=True)
class Scope:
    """The system and workload of a query, None for all; `runs` counts their runs, `stored` all that are stored."""

    system: str | None
    workload: str | None
    systems: tuple[str, ...]
    workloads: tuple[str, ...]
    runs: int
    stored: int

    @property
    def words(self) -> str:
        """The scope in words: ` of bert on lab`."""
        of = f" of {self.workload}" if self.workload else ""
        return f"{of} on {self.system}" if self.system else of


def scope_of(client: Local, query: PageQuery, state: RunState | None = None) -> Scope:
    """Return the system and the workload of the query, among runs of a state, or of all."""
    system, workload = query.word("system"), query.word("workload")
    with client.store.catalog.read() as session:
        newest = session.runs.find(RunFilter(state=state), limit=NEWEST)
        runs = session.runs.stand(RunFilter(system=system, workload=workload, state=state))[0]
        stored = session.runs.count()
    here = [run for run in newest if system in (None, run.system)]
    systems = {run.system for run in newest} | ({system} if system else set())
    workloads = {run.workload for run in here} | ({workload} if workload else set())
    return Scope(system, workload, tuple(sorted(systems)), tuple(sorted(workloads)), runs, stored)
