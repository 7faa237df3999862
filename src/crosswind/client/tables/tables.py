"""Tables of a store of this machine, and of a server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http.client import HTTPException
from itertools import islice
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, urlsplit

from crosswind.client.http import segment
from crosswind.client.tables.columns import schema_of, schema_of_set, table_of
from crosswind.client.tables.table import Table
from crosswind.client.tables.trial_rows import TrialRow
from crosswind.data.schema.answers.jobs import ListedJob
from crosswind.data.schema.answers.nodes import NodeState
from crosswind.data.schema.answers.runs import RunOutcome
from crosswind.data.schema.answers.series import SeriesPoint, points
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.question import HOUR_SECONDS
from crosswind.data.schema.steps import STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from http.client import HTTPResponse

    import pyarrow as pa

    from crosswind.client.http import Server
    from crosswind.data.schema.answers.series import SeriesAnswer
    from crosswind.data.schema.run import RunState
    from crosswind.data.schema.series_question import SeriesQuestion
    from crosswind.data.schema.trial import TrialRecord
    from crosswind.data.store.store import Store

ARROW = "application/vnd.apache.arrow.stream"
WANTED = f"{ARROW}, application/json;q=0.5"
PART_ROWS, STEP_ROWS = 5_000, 50_000
STEPS = """
select * from step
where run_id = $1 and ($2 is null or rank = $2) and ($3 is null or (step, rank) > ($3, $4))
order by step, rank limit $5
"""


class Tables(Protocol):
    """Whole lists as tables; conditions that are None do not count. Reading raises as `Client`'s methods."""

    def runs(self, workload: str | None = None, system: str | None = None, *, state: RunState | None = None) -> Table:
        """Runs with the times of their steps, newest first: the fields of `RunOutcome`."""
        ...

    def steps(self, run_id: str, *, rank: int | None = None) -> Table:
        """The steps of a run, one row a step and rank, in this order; durations in seconds."""
        ...

    def jobs(
        self,
        name: str | None = None,
        system: str | None = None,
        *,
        user: str | None = None,
        state: str | None = None,
    ) -> Table:
        """Scheduler jobs, newest first: the fields of `ListedJob`."""
        ...

    def nodes(self, since_seconds: int = HOUR_SECONDS) -> Table:
        """Nodes with samples of the last so many seconds, by name: the fields of `NodeState`."""
        ...

    def series(self, question: SeriesQuestion) -> Table:
        """The course of metrics over time, a row a series and step: the fields of `SeriesPoint`."""
        ...

    def trials(self, study: str) -> Table:
        """The trials of a study, oldest first; the objective as services keep it, lower is better."""
        ...


@dataclass(frozen=True)
class LocalTables:
    """The `Tables` of a store."""

    store: Store
    trials_of: Callable[[str], Sequence[TrialRecord]]
    series_of: Callable[[SeriesQuestion], SeriesAnswer]

    def runs(self, workload: str | None = None, system: str | None = None, *, state: RunState | None = None) -> Table:
        """As `Tables.runs`."""
        from crosswind.data.catalog.runs import RunFilter  # noqa: PLC0415 - heavy
        from crosswind.data.store.features import outcomes  # noqa: PLC0415

        def parts() -> Iterator[pa.Table]:
            place: tuple[int, str] | None = None
            while True:
                with self.store.catalog.read() as session:
                    runs = session.runs.find(RunFilter(workload, system, state), before=place, limit=PART_ROWS)
                yield table_of(outcomes(self.store, runs), schema_of(RunOutcome))
                if len(runs) < PART_ROWS:
                    return
                place = runs[-1].started_ns or 0, runs[-1].run_id

        return Table("runs", parts)

    def steps(self, run_id: str, *, rank: int | None = None) -> Table:
        """As `Tables.steps`."""
        from crosswind.data.lake.steps_summary import time_of  # noqa: PLC0415 - heavy

        def parts() -> Iterator[pa.Table]:
            with self.store.catalog.read() as session:
                within = time_of([session.runs.get(run_id)])
            step: int | None = None
            last: int | None = None
            while True:
                rows = self.store.lake.table(STEPS, [run_id, rank, step, last, STEP_ROWS], within=within)
                schema = schema_of_set(STEP)
                yield rows.select(schema.names).cast(schema)
                if len(rows) < STEP_ROWS:
                    return
                step, last = rows["step"][-1].as_py(), rows["rank"][-1].as_py()

        return Table("steps", parts)

    def jobs(
        self,
        name: str | None = None,
        system: str | None = None,
        *,
        user: str | None = None,
        state: str | None = None,
    ) -> Table:
        """As `Tables.jobs`."""
        from crosswind.data.store.job_usage import listed_job  # noqa: PLC0415 - heavy
        from crosswind.data.store.jobs import JobFilter  # noqa: PLC0415

        def parts() -> Iterator[pa.Table]:
            place: tuple[int, str, str] | None = None
            while True:
                jobs = self.store.jobs.find(JobFilter(name, system, user, state), before=place, limit=PART_ROWS)
                yield table_of(map(listed_job, jobs), schema_of(ListedJob))
                if len(jobs) < PART_ROWS:
                    return
                place = jobs[-1].started_ns or 0, jobs[-1].system, jobs[-1].job_id

        return Table("jobs", parts)

    def nodes(self, since_seconds: int = HOUR_SECONDS) -> Table:
        """As `Tables.nodes`."""
        from crosswind.data.store.fleet import fleet  # noqa: PLC0415 - heavy

        def parts() -> Iterator[pa.Table]:
            since_ns = max(0, time.time_ns() - since_seconds * 1_000_000_000)
            yield table_of(fleet(self.store, since_ns), schema_of(NodeState))

        return Table("nodes", parts)

    def series(self, question: SeriesQuestion) -> Table:
        """As `Tables.series`."""
        return _series(lambda: self.series_of(question))

    def trials(self, study: str) -> Table:
        """As `Tables.trials`."""
        return _trials(lambda: self.trials_of(study))


@dataclass(frozen=True)
class RemoteTables:
    """The `Tables` of a server, in Arrow's format where it has that."""

    server: Server
    trials_of: Callable[[str], Sequence[TrialRecord]]
    series_of: Callable[[SeriesQuestion], SeriesAnswer]

    def runs(self, workload: str | None = None, system: str | None = None, *, state: RunState | None = None) -> Table:
        """As GET /v1/run-outcomes."""
        query = {"workload": workload, "system": system, "state": state}
        return self._table("runs", "/v1/run-outcomes", query, schema_of(RunOutcome))

    def steps(self, run_id: str, *, rank: int | None = None) -> Table:
        """As GET /v1/runs/{run_id}/steps."""
        return self._table("steps", f"/v1/runs/{segment(run_id)}/steps", {"rank": rank}, schema_of_set(STEP))

    def jobs(
        self,
        name: str | None = None,
        system: str | None = None,
        *,
        user: str | None = None,
        state: str | None = None,
    ) -> Table:
        """As GET /v1/jobs."""
        query = {"name": name, "system": system, "user": user, "state": state}
        return self._table("jobs", "/v1/jobs", query, schema_of(ListedJob))

    def nodes(self, since_seconds: int = HOUR_SECONDS) -> Table:
        """As GET /v1/nodes."""
        return self._table("nodes", "/v1/nodes", {"since_seconds": since_seconds}, schema_of(NodeState))

    def series(self, question: SeriesQuestion) -> Table:
        """As GET /v1/series."""
        return _series(lambda: self.series_of(question))

    def trials(self, study: str) -> Table:
        """As GET /v1/studies/{study_id}/trials."""
        return _trials(lambda: self.trials_of(study))

    def _table(self, name: str, path: str, query: Mapping[str, object | None], schema: pa.Schema) -> Table:
        return Table(name, lambda: self._parts(name, path, query, schema))

    def _parts(self, name: str, path: str, query: Mapping[str, object | None], schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the parts of a list, in Arrow as long as they come so."""
        cursor: str | None = None
        while True:
            with self.server.stream(path, {**query, "cursor": cursor}, {"Accept": WANTED}) as answer:
                is_arrow = answer.headers.get_content_type() == ARROW
                if is_arrow:
                    yield from self._arrow_parts(answer)
            if not is_arrow:
                yield from self._json_parts(name, path, query, schema)  # of a server without that format
                return
            if (cursor := _cursor(answer.headers.get("Link", ""))) is None:
                return

    def _arrow_parts(self, answer: HTTPResponse) -> Iterator[pa.Table]:
        """Yield the batches of an answer as they come, after a part that has its columns alone."""
        import pyarrow as pa  # noqa: PLC0415 - heavy

        try:
            batches = pa.ipc.open_stream(answer)
            yield batches.schema.empty_table()
            for batch in batches:
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, HTTPException) as error:
            raise UnavailableError(f"{self.server.url}: the answer broke off: {error}") from error

    def _json_parts(
        self, name: str, path: str, query: Mapping[str, object | None], schema: pa.Schema
    ) -> Iterator[pa.Table]:
        rows = self.server.rows(path, name, query)
        part = list(islice(rows, PART_ROWS))
        yield table_of(part, schema)
        while part := list(islice(rows, PART_ROWS)):
            yield table_of(part, schema)


def _series(read: Callable[[], SeriesAnswer]) -> Table:
    def parts() -> Iterator[pa.Table]:
        yield table_of(points(read()), schema_of(SeriesPoint))

    return Table("series", parts)


def _trials(read: Callable[[], Sequence[TrialRecord]]) -> Table:
    def parts() -> Iterator[pa.Table]:
        yield table_of(map(TrialRow.of, read()), schema_of(TrialRow))

    return Table("trials", parts)


def _cursor(link: str) -> str | None:
    """Return the cursor of the next part from a Link field; None without one. Source: RFC 8288."""
    address, _, rest = link.partition(">")
    if 'rel="next"' not in rest:
        return None
    return parse_qs(urlsplit(address.removeprefix("<")).query).get("cursor", [None])[0]
