"""The row rule in the lake: whose jobs, which nodes, and which measurements of nodes somebody may see."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.lake import Lake
from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.schema.hostlist import expand
from crosswind.data.store.job_accounts import settled
from crosswind.data.store.jobs import JOB, Jobs

JOBS_MAX = 2000  # newest, whose nodes are looked up
OTHERS = "another-"  # what a node of others is called where its measurements are compared with


@dataclass
class Cut:
    """Cuts the sets of a lake to the rows that the rule of a catalog lets be seen.

    Jobs are those of the rule's users, accounts and jobs: of several accounts of a job the newest that names them says
    whose it is. Samples are those of nodes that such jobs, or runs that may be seen, had. Measurements of other nodes
    are there to compare with, and their nodes have other names. Rows of runs are found by the runs of the catalog.
    """

    catalog: Catalog
    _found: frozenset[str] | None = field(default=None, init=False)

    def __call__(self, lake: Lake, name: str, files: str) -> str:
        """Return the rows of a set that may be seen, in SQL; `files` are those that are read, in SQL."""
        if name == JOB.name:
            return f"(select * from {files} where {self._is_job(lake)})"  # noqa: S608 - our own texts, quoted
        columns = lake.columns(name)
        if "run_id" in columns or "node" not in columns:
            return files
        nodes = _listed(self._nodes(lake))
        if name != PREFLIGHT.name:
            return f"(select * from {files} where node in {nodes})"  # noqa: S608 - as above
        return f"(select * replace ({', '.join(self._hidden(lake, nodes))}) from {files})"  # noqa: S608 - as above

    def _hidden(self, lake: Lake, nodes: str) -> Iterator[str]:
        """Yield the columns of checks as they may be seen: of others' their ids and jobs, and nodes of others."""
        jobs = _listed_pairs(self._jobs_of_runs)
        is_own = f"coalesce(({self._is_job(lake)} or (system, job_id) in {jobs}), false)"
        yield f"case when {is_own} then check_id else '{OTHERS}' || md5(check_id)[:8] end as check_id"
        yield f"case when {is_own} then job_id end as job_id"
        for column in ("node", "peer"):
            is_seen = f"{column} is null or {column} in {nodes} or {is_own}"
            yield f"case when {is_seen} then {column} else '{OTHERS}' || md5({column})[:8] end as {column}"

    def _is_job(self, lake: Lake) -> str:
        """Return the condition on a row with system and job that the job may be seen."""
        jobs = [f"(system, job_id) in {_listed_pairs(self.catalog.rule.jobs)}"]
        if JOB.name in lake.sets():
            every = lake.source(JOB.name, lake.parts(JOB.name))
            users, accounts = _listed(self._pseudonyms), _listed(self.catalog.rule.accounts)
            is_named = f'("user" in {users} or account in {accounts})'
            among = f"job_id in (select job_id from {every} where {is_named})"  # noqa: S608 - as above
            of_each = settled(f"(select * from {every})", ("user", "account"), where=among)  # noqa: S608 - as above
            jobs.append(f"(system, job_id) in (select (system, job_id) from ({of_each}) where {is_named})")  # noqa: S608
        return f"({' or '.join(jobs)})"

    @cached_property
    def _pseudonyms(self) -> frozenset[str]:
        """The users as the lake has them."""
        with self.catalog.read() as session:
            names = {session.people.pseudonym(user) for user in self.catalog.rule.users}
        return frozenset(name for name in names if name)

    @cached_property
    def _jobs_of_runs(self) -> frozenset[tuple[str, str]]:
        with self.catalog.read() as session:
            return frozenset(session.runs.jobs(limit=JOBS_MAX))

    def _nodes(self, lake: Lake) -> frozenset[str]:
        """Return the nodes of runs and jobs that may be seen, also by the names by which they are sampled."""
        if self._found is None:
            spans = Jobs(lake, self.catalog).newest_spans(limit=JOBS_MAX)
            with self.catalog.read() as session:
                nodes = session.runs.nodes() | {node for span in spans for node in expand(span.nodes)}
                self._found = frozenset(nodes | session.places.sampled_as(nodes))
        return self._found


def _listed(texts: Iterable[str]) -> str:
    """Return texts as a list in SQL; an empty one holds nothing."""
    return f"({', '.join(map(_quoted, sorted(texts))) or 'null'})"


def _listed_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return f"({', '.join(f'({_quoted(one)}, {_quoted(other)})' for one, other in sorted(pairs)) or '(null, null)'})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
