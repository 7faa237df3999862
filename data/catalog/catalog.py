"""The catalog's door: sessions that read, and sessions that write in one transaction."""

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Select, func, select, text

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.audit import Audit
from crosswind.data.catalog.batches import Batches
from crosswind.data.catalog.clock import CatalogClock
from crosswind.data.catalog.cohorts import Cohorts
from crosswind.data.catalog.database import check_revision
from crosswind.data.catalog.first_answers import FirstAnswers
from crosswind.data.catalog.injections import Injections
from crosswind.data.catalog.judged_cohorts import JudgedCohorts
from crosswind.data.catalog.judged_runs import JudgedRuns
from crosswind.data.catalog.lake.files import LakeFiles
from crosswind.data.catalog.lake.identity import LakeIdentity
from crosswind.data.catalog.leases import Leases
from crosswind.data.catalog.live.events import Events
from crosswind.data.catalog.live.notes import Notes, Pace
from crosswind.data.catalog.live.webhooks import Webhooks
from crosswind.data.catalog.models import Models
from crosswind.data.catalog.operations import Operations
from crosswind.data.catalog.people import People
from crosswind.data.catalog.places import Places
from crosswind.data.catalog.positions import Positions
from crosswind.data.catalog.ranks import Ranks
from crosswind.data.catalog.read_files import ReadFiles
from crosswind.data.catalog.reports import Reports
from crosswind.data.catalog.requests import Requests
from crosswind.data.catalog.runs import Runs
from crosswind.data.catalog.studies import Studies
from crosswind.data.catalog.tokens import Tokens
from crosswind.data.catalog.usage import Usage
from crosswind.data.catalog.verdicts import Verdicts
from crosswind.data.catalog.version import CatalogVersion
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.landing import Landing

SLOTS = 64  # rows of totals, so that sessions seldom wait for each other
# a machine that vanished has gone for PostgreSQL after a minute, and not after two hours
SOON_MISSED = "tcp_keepalives_idle = 30", "tcp_keepalives_interval = 10", "tcp_keepalives_count = 3"


@dataclass(frozen=True)
class Ingested:
    """Counts of all that was taken in."""

    batches: int
    rows: int
    skipped: int


@dataclass(frozen=True)
class NewBatch:
    """A batch that is about to count as stored; `origin` is the name of its segment or file.

    One with a time at which it was made, ns UTC, is forgotten some day.
    """

    batch_id: str
    origin: str
    rows: int
    skipped: int = 0
    made_ns: int | None = None


class Session:
    """Everything in the catalog, over one connection; of runs and studies those that the rule lets be seen."""

    def __init__(
        self,
        connection: Connection,
        rule: RowRule = ALL_ROWS,
        notes: Notes | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._connection = connection
        self._notes = notes = notes or Notes()
        self._noted: list[dict[str, Any]] = []  # batches
        self.runs = Runs(connection, rule, notes)
        self.ranks = Ranks(connection, rule)
        self.verdicts = Verdicts(connection, notes)
        self.judged_runs = JudgedRuns(connection, rule)
        self.judged_cohorts = JudgedCohorts(connection, rule)
        self.cohorts = Cohorts(connection, rule)
        self.people = People(connection)
        self.read_files = ReadFiles(connection)
        self.lake_files = LakeFiles(connection, clock)
        self.lake_identity = LakeIdentity(connection)
        self.batches = Batches(connection)
        self.positions = Positions(connection)
        self.places = Places(connection)
        self.injections = Injections(connection)
        self.studies = Studies(connection, rule, notes)
        self.leases = Leases(connection, notes)
        self.reports = Reports(connection)
        self.requests = Requests(connection)
        self.first_answers = FirstAnswers(connection)
        self.models = Models(connection)
        self.operations = Operations(connection)
        self.tokens = Tokens(connection, notes, clock)
        self.audit = Audit(connection)
        self.usage = Usage(connection)
        self.events = Events(connection, rule)
        self.webhooks = Webhooks(connection)

    def parts_of(self, query: Select[Any], rows_at_once: int) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the rows of a query part by part, as many at once; which may be seen is its caller's to say."""
        yield from self._connection.execution_options(yield_per=rows_at_once).execute(query).partitions()

    def has_batch(self, batch_id: str) -> bool:
        """Return whether this batch was ingested before."""
        return rows.fetch(self._connection, tables.ingest_batches, batch_id=batch_id) is not None

    def batches_among(self, batch_ids: Collection[str]) -> set[str]:
        """Return those of the batches that were ingested before."""
        column = tables.ingest_batches.c.batch_id
        query = select(column).where(rows.among(self._connection, column, batch_ids))
        return set(self._connection.execute(query).scalars())

    def add_batch(
        self, batch_id: str, origin: str, *, row_count: int, skipped: int, landings: Iterable[Landing] = ()
    ) -> None:
        """Notes that a batch is stored for ever; together with what else the session writes, or not at all.

        `landings` are its rows: what was computed of their runs before is due again. Files in which an object store
        holds them are added in the same session, to `lake_files`.
        """
        self.add_batches([NewBatch(batch_id, origin, row_count, skipped)], landings)

    def add_batches(self, batches: Sequence[NewBatch], landings: Iterable[Landing]) -> None:
        """Notes that some batches are stored, all or none, as `add_batch` does."""
        landings = list(landings)
        self.verdicts.landed(landings)
        self._notes.landed(landings)
        for batch in batches:
            self._notes.gap(batch.origin, batch.skipped)
        noted = [{**asdict(batch), "received_ns": time.time_ns()} for batch in batches]
        rows.add_all(self._connection, tables.ingest_batches, noted)
        self._noted += noted

    def settle_totals(self) -> None:
        """Add the batches of this session to the totals, at its very end: other sessions may wait for the same slot."""
        if not self._noted:
            return
        table, new = tables.ingest_totals, {"batches": len(self._noted)}
        new |= {name: sum(one[name] for one in self._noted) for name in ("rows", "skipped")}
        more = {name: table.c[name] + number for name, number in new.items()}
        statement = rows.upsert_with(self._connection, table, ("slot", *new), more)
        self._connection.execute(statement, {"slot": secrets.randbelow(SLOTS), **new})
        self._noted = []

    def ingested(self) -> Ingested:
        """Totals over every batch that is stored by sessions that have ended."""
        table = tables.ingest_totals
        sums = (func.coalesce(func.sum(column), 0) for column in (table.c.batches, table.c.rows, table.c.skipped))
        return Ingested(*map(int, self._connection.execute(select(*sums)).one()))

    def last_batch_ns(self) -> int | None:
        """Return when the newest batch came, ns UTC; None without one."""
        newest: int | None = self._connection.execute(select(func.max(tables.ingest_batches.c.received_ns))).scalar()
        return newest

    def batches_since(self, moment_ns: int) -> int:
        """Return how many batches came since then."""
        table = tables.ingest_batches
        query = select(func.count()).select_from(table).where(table.c.received_ns >= moment_ns)
        return int(self._connection.execute(query).scalar_one())


class Catalog:
    """Sessions over one database, for whoever the rule is of."""

    def __init__(
        self,
        engine: Engine,
        rule: RowRule = ALL_ROWS,
        pace: Pace | None = None,
        *,
        version: CatalogVersion | None = None,
        clock: CatalogClock | None = None,
    ) -> None:
        self._engine = engine
        self.rule = rule
        self._pace = pace or Pace()
        self.version = version or CatalogVersion(engine)
        self.clock = clock or CatalogClock(engine)
        self._reading = engine.execution_options(writes=False)

    @property
    def engine(self) -> Engine:
        """The database."""
        return self._engine

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only looks."""
        with self._reading.connect() as connection:
            yield Session(connection, self.rule, clock=self.clock)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose changes are all kept at its end, with the events of them, or none when it raises.

        Raises: OtherVersionError when another version of Crosswind has migrated the tables since they were opened.
        """
        notes = Notes(self._pace)
        with self._engine.begin() as connection:
            check_revision(connection)
            session = Session(connection, self.rule, notes, self.clock)
            yield session
            notes.store(connection)
            session.settle_totals()

    def seen_by(self, rule: RowRule) -> "Catalog":
        """Return the same catalog, for somebody else."""
        return Catalog(self._engine, rule, self._pace, version=self.version, clock=self.clock)

    def check(self) -> None:
        """Writes a row as it is, which shows that the database answers and takes more.

        Raises: what database.NO_ANSWER holds; as `write`.
        """
        with self._engine.begin() as connection:
            check_revision(connection)
            connection.execute(text("update alembic_version set version_num = version_num"))

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Yield whether this process alone does the work of this name, within; PostgreSQL frees it when we are killed.

        SQLite belongs to one machine, where locks of files say so: there everybody is.
        """
        if self._engine.dialect.name != "postgresql":
            yield True
            return
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for setting in SOON_MISSED:
                connection.execute(text(f"set {setting}"))
            key = func.hashtextextended(f"alone {name}", 0)
            is_ours = bool(connection.execute(select(func.pg_try_advisory_lock(key))).scalar_one())
            try:
                yield is_ours
            finally:
                if is_ours:
                    connection.invalidate()  # closes it, which frees the lock also where the server was restarted

    def close(self) -> None:
        """Gives back every connection."""
        self.version.close()
        self._engine.dispose()
