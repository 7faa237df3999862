"""The state of a server, put together of what its parts say of themselves."""

import os
import platform
import resource
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version

from anyio import CapacityLimiter
from fastapi import FastAPI
from sqlalchemy import text

from crosswind.api.edge.edge import Edge
from crosswind.api.observe.traces import ENDPOINTS
from crosswind.api.readiness import Readiness
from crosswind.api.settings import ServerSettings
from crosswind.api.state.recent import RecentErrors
from crosswind.api.state.sizes import Sizes
from crosswind.api.telemetry import RequestCounts
from crosswind.api.thread_beside import Ending
from crosswind.data.catalog.database import HEAD, NO_ANSWER, revision_of
from crosswind.data.schema.answers.status import Activity, Check, ServerStatus, Use
from crosswind.data.schema.errors import ProjectError
from crosswind.data.store.store import Store

PACKAGES = ("crosswind", "sqlalchemy", "duckdb", "pyarrow", "fastapi", "uvicorn", "numpy", "scikit-learn")
ROOM_SHARE = 0.05  # of the disk that is to be free
FILES_SHARE = 0.9  # of the open files that the process may have
HOUR_NS = 3600 * 1_000_000_000
FILES = "/proc/self/fd"
MASKED = "set, not shown"


@dataclass
class Observed:
    """The parts of a server that are looked at."""

    store: Store
    settings: ServerSettings
    edge: Edge
    readiness: Readiness
    counts: RequestCounts
    errors: RecentErrors
    sizes: Sizes
    places: Mapping[str, CapacityLimiter]
    started_ns: int
    beats: tuple[Ending, ...] = ()

    @classmethod
    def of(cls, app: FastAPI) -> "Observed":
        """Return those of an application."""
        observed: Observed = app.state.observed
        return observed

    def status(self) -> ServerStatus:
        """Return the present state; the catalog is asked, and may be away."""
        checks = [*self._checks()]
        rows, last_ns, in_hour = self._ingested(checks)
        skipped = self.store.lake.skipped
        return ServerStatus(
            at_ns=time.time_ns(),
            started_ns=self.started_ns,
            checks=tuple(checks),
            configuration=dict(self._configuration()),
            uses=tuple(self._uses()),
            stored={**rows, **self._sizes()},
            last_batch_ns=last_ns,
            batches_in_hour=in_hour,
            damaged=tuple(skipped.names[:50]) if skipped else (),
            threads=tuple(self._activity(beat) for beat in self.beats),
            versions=dict(self._versions()),
            errors=self.errors.kinds(),
            answers=self.counts.by_status(),
            refusals=dict(self.edge.refusals),
        )

    def _checks(self) -> Iterator[Check]:
        try:
            self.readiness.check()
        except (ProjectError, *NO_ANSWER) as error:
            yield Check("the store can be read and written", is_good=False, detail=str(error)[:300])
        else:
            yield Check("the store can be read and written", is_good=True)
        room = shutil.disk_usage(self.store.home)
        detail = f"{room.free // 2**20} MiB free of {room.total // 2**20}"
        yield Check("the disk has room", is_good=room.free >= ROOM_SHARE * room.total, detail=detail)
        damaged = self.store.lake.damaged
        yield Check("every file of the lake can be read", is_good=not damaged, detail=f"{damaged} damaged")
        dead = [beat.name for beat in self.beats if not beat.is_alive]
        yield Check("all threads run", is_good=not dead, detail=", ".join(dead))
        used = len(os.listdir(FILES)) if os.path.isdir(FILES) else 0  # noqa: PTH112, PTH208
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        yield Check("open files are within the limit", is_good=used < FILES_SHARE * limit, detail=f"{used} of {limit}")

    def _ingested(self, checks: list[Check]) -> tuple[dict[str, int | None], int | None, int]:
        try:
            with self.store.catalog.read() as session:
                total, runs = session.ingested(), session.runs.count()
                last_ns, in_hour = session.last_batch_ns(), session.batches_since(time.time_ns() - HOUR_NS)
        except (ProjectError, *NO_ANSWER) as error:
            checks.append(Check("the catalog answers", is_good=False, detail=type(error).__name__))
            return {}, None, 0
        rows: dict[str, int | None] = {
            "runs": runs,
            "batches": total.batches,
            "rows of batches": total.rows,
            "broken lines": total.skipped,
        }
        return rows, last_ns, in_hour

    def _sizes(self) -> Mapping[str, int | None]:
        try:
            return self.sizes.look()
        except (OSError, *NO_ANSWER):
            return {}

    def _uses(self) -> Iterator[Use]:
        limits = self.edge.limits
        yield Use("connections", limits.connections, self.edge.connection_count)
        yield Use("connections beyond the limits", limits.reserved_connections, self.edge.guest_count)
        yield Use("connections of the busiest client", limits.client_connections, self.edge.busiest_count)
        for name, limiter in self.places.items():
            said = limiter.statistics()
            yield Use(name.rpartition("/")[2], int(said.total_tokens), said.borrowed_tokens, said.tasks_waiting)

    def _activity(self, beat: Ending) -> Activity:
        error = self.errors.last_of(f"crosswind.{beat.name}")
        return Activity(beat.name, beat.is_alive, beat.turns, beat.began_ns, beat.ended_ns, error)

    def _configuration(self) -> Iterator[tuple[str, str]]:
        settings = self.settings
        yield "store", str(self.store.home)
        yield "database", self.store.catalog.engine.url.render_as_string(hide_password=True)
        facts = {name: getattr(settings, name) for name in settings.__dataclass_fields__}
        for name in ("limits", "oidc", "token"):
            facts.pop(name)
        yield "token", MASKED if settings.token else "none"
        facts["uds_mode"] = f"{settings.uds_mode:o}"
        yield from ((name.replace("_", " "), _shown(value)) for name, value in facts.items())
        if settings.oidc is None:
            yield "oidc", "none"
        else:
            of_oidc = asdict(settings.oidc) | {"client_secret": MASKED if settings.oidc.client_secret else "none"}
            yield from ((f"oidc {name.replace('_', ' ')}", _shown(value)) for name, value in of_oidc.items())
        yield (
            "traces to",
            next((_without_password(os.environ[name]) for name in ENDPOINTS if os.environ.get(name)), "none"),
        )

    def _versions(self) -> Iterator[tuple[str, str]]:
        yield from ((name, version(name)) for name in PACKAGES)
        yield "Python", platform.python_version()
        yield "system", platform.platform()
        try:
            with self.store.catalog.engine.connect().execution_options(writes=False) as connection:
                yield "migration of the catalog", f"{revision_of(connection)} of {HEAD}"
                is_sqlite = connection.dialect.name == "sqlite"
                said = connection.execute(
                    text("select sqlite_version()" if is_sqlite else "show server_version")
                ).scalar()
                yield "SQLite" if is_sqlite else "PostgreSQL", str(said)
        except (ProjectError, *NO_ANSWER):
            yield "migration of the catalog", "unknown: it does not answer"


def _shown(value: object) -> str:
    if value is None or (not value and not isinstance(value, int)):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {part}" for name, part in value.items())
    return str(value)


def _without_password(address: str) -> str:
    """Return an address without the part that may hold a password."""
    scheme, mark, rest = address.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
