"""The system, workload and period that a page about many runs is about, and the others to choose from."""

from collections.abc import Set
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PERIODS, PageQuery
from crosswind.dashboards.wording import count
from crosswind.data.catalog.runs import ANY_RUN, RunFilter
from crosswind.data.schema.run import RunState

NEWEST = 500  # runs whose systems and workloads can be chosen


@dataclass(frozen=True)
class Scope:
    """The system, workload and period of a query, None for all; `runs` counts their runs.

    `stored` counts all runs that are stored.
    """

    system: str | None
    workload: str | None
    period: str | None
    systems: tuple[str, ...]
    workloads: tuple[str, ...]
    runs: int
    stored: int

    @property
    def words(self) -> str:
        """The scope in words: ` of bert on lab in the last 7 days`."""
        of = f" of {self.workload}" if self.workload else ""
        on = f" on {self.system}" if self.system else ""
        return of + on + (f" in the last {count(PERIODS[self.period], 'day')}" if self.period else "")


def scope_of(client: Local, query: PageQuery, state: RunState | None = None) -> Scope:
    """Return the system and the workload of the query, among runs of a state, or of all."""
    system, workload, since_ns = query.word("system"), query.word("workload"), query.since_ns
    wanted = RunFilter(system=system, workload=workload, state=state, since_ns=since_ns)
    with client.store.catalog.read() as session:
        newest = session.runs.outlines(RunFilter(state=state), limit=NEWEST)
        stored = session.runs.count()
        runs = stored if wanted == ANY_RUN else session.runs.count(wanted)
    here = [run for run in newest if system in (None, run.system)]
    systems, workloads = {run.system for run in newest}, {run.workload for run in here}
    period = query.word("period")
    return Scope(system, workload, period, _with(systems, system), _with(workloads, workload), runs, stored)


def _with(names: Set[str], chosen: str | None) -> tuple[str, ...]:
    """Return the names in order, and behind them one that was chosen and is nowhere."""
    return (*sorted(names), *({chosen} - names if chosen else ()))
