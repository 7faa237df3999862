"""Acts on one's own rows, and the audit trail of them: in a store of this machine, or at a server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Protocol

from crosswind.client.decoding import decode
from crosswind.client.http import segment
from crosswind.data.files import published
from crosswind.data.schema.access import AuditEntry, this_person
from crosswind.data.schema.errors import ForbiddenError, NotFoundError, UnavailableError
from crosswind.data.schema.part import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPResponse
    from typing import IO, BinaryIO

    from crosswind.client.http import Server
    from crosswind.data.store.store import Store

AUDIT_LISTED = 100


class OwnRows(Protocol):
    """Acts on rows that are one's own."""

    def share_run(self, run_id: str, *, shared: bool) -> bool:
        """Let everybody see a run, or no longer; whether it is shared now. Raises: NotFoundError, ForbiddenError."""
        ...

    def share_study(self, study: str, *, shared: bool) -> bool:
        """Let everybody take part in a study, or no longer; whether it is shared. Raises: as `share_run`."""
        ...

    def delete_run(self, run_id: str) -> int:
        """Delete a run, and return how many rows it had. Raises: as `share_run`; ConflictError during compaction."""
        ...

    def export_run(self, run_id: str, into: Path) -> None:
        """Write a ZIP file of everything that is stored of a run. Raises: NotFoundError, UnavailableError."""
        ...

    def reveal(self, pseudonym: str) -> str:
        """Return whose pseudonym it is; that it was asked is kept. Raises: NotFoundError, ForbiddenError."""
        ...

    def audit(
        self, who: str | None = None, act: str | None = None, subject: str | None = None, *, limit: int = AUDIT_LISTED
    ) -> tuple[AuditEntry, ...]:
        """Return the newest entries of the audit trail, newest first. Raises: ForbiddenError."""
        ...


@dataclass(frozen=True)
class LocalRows:
    """The `OwnRows` of a store, for whoever it is opened for; `who` is what the audit calls them."""

    store: Store
    who: str

    @classmethod
    def of_process(cls, store: Store) -> LocalRows:
        """Return those of this process's user."""
        return cls(store, this_person())

    def share_run(self, run_id: str, *, shared: bool) -> bool:
        """As `OwnRows.share_run`."""
        from crosswind.data.store.own_runs import share_run  # noqa: PLC0415 - heavy

        return share_run(self.store, run_id, shared=shared, who=self.who).shared

    def share_study(self, study: str, *, shared: bool) -> bool:
        """As `OwnRows.share_study`."""
        with self.store.catalog.write() as session:
            session.audit.add(self.who, "share study" if shared else "unshare study", study)
            session.studies.share(study, shared=shared)
        return shared

    def delete_run(self, run_id: str) -> int:
        """As `OwnRows.delete_run`."""
        from crosswind.data.store.own_runs import erase  # noqa: PLC0415 - heavy

        return erase(self.store, run_id, who=self.who)

    def export_run(self, run_id: str, into: Path) -> None:
        """As `OwnRows.export_run`."""
        with _created(into) as file:
            self.pack_run(run_id, file)

    def pack_run(self, run_id: str, into: IO[bytes]) -> None:
        """Write the same to an open file. Raises: NotFoundError."""
        from crosswind.data.store.own_runs import export  # noqa: PLC0415 - heavy

        export(self.store, run_id, into, who=self.who)

    def reveal(self, pseudonym: str) -> str:
        """As `OwnRows.reveal`."""
        self._require_admin()
        with self.store.catalog.write() as session:
            name = session.people.names([pseudonym]).get(pseudonym)
            session.audit.add(self.who, "reveal pseudonym", pseudonym, known=name is not None)
        if name is None:
            raise NotFoundError(f"pseudonym {pseudonym!r:.80} is nobody's here")
        return name

    def audit(
        self, who: str | None = None, act: str | None = None, subject: str | None = None, *, limit: int = AUDIT_LISTED
    ) -> tuple[AuditEntry, ...]:
        """As `OwnRows.audit`."""
        wanted = {"who": who, "act": act, "subject": subject}
        return self.audit_part(wanted, Part(limit, descending=True))

    def audit_part(self, wanted: Mapping[str, str | None], part: Part) -> tuple[AuditEntry, ...]:
        """Return a part of the entries with these values of who, act or subject. Raises: ForbiddenError."""
        self._require_admin()
        with self.store.catalog.read() as session:
            return tuple(session.audit.find(wanted, part))

    def _require_admin(self) -> None:
        if not self.store.rule.changes_all:
            raise ForbiddenError(f"{self.who}: this is for administrators")


@dataclass(frozen=True)
class RemoteRows:
    """The `OwnRows` at a server, of whoever the token stands for."""

    server: Server

    def share_run(self, run_id: str, *, shared: bool) -> bool:
        """As POST /v1/runs/{run_id}:share."""
        return bool(self.server.post(f"/v1/runs/{segment(run_id)}:share", {"shared": shared})["shared"])

    def share_study(self, study: str, *, shared: bool) -> bool:
        """As POST /v1/studies/{study_id}:share."""
        return bool(self.server.post(f"/v1/studies/{segment(study)}:share", {"shared": shared})["shared"])

    def delete_run(self, run_id: str) -> int:
        """As POST /v1/runs/{run_id}:delete."""
        return int(self.server.post(f"/v1/runs/{segment(run_id)}:delete", {})["rows"])

    def export_run(self, run_id: str, into: Path) -> None:
        """As GET /v1/runs/{run_id}/export."""
        with self.server.stream(f"/v1/runs/{segment(run_id)}/export", {}, {}) as answer, _created(into) as file:
            self._copy(answer, file)

    def _copy(self, answer: HTTPResponse, file: BinaryIO) -> None:
        try:
            copyfileobj(answer, file)
            if answer.length:
                raise IncompleteRead(b"", answer.length)
        except (TimeoutError, ConnectionError, HTTPException) as error:
            raise UnavailableError(f"{self.server.url}: the answer broke off: {error}") from error

    def reveal(self, pseudonym: str) -> str:
        """As POST /v1/pseudonyms/{pseudonym}:reveal."""
        return str(self.server.post(f"/v1/pseudonyms/{segment(pseudonym)}:reveal", {})["name"])

    def audit(
        self, who: str | None = None, act: str | None = None, subject: str | None = None, *, limit: int = AUDIT_LISTED
    ) -> tuple[AuditEntry, ...]:
        """As GET /v1/audit."""
        said = self.server.get("/v1/audit", {"who": who, "act": act, "subject": subject, "limit": limit})
        try:
            return tuple(decode(AuditEntry, entry) for entry in said["entries"])
        except (KeyError, ValueError) as error:
            raise self.server.malformed(error) from error


@contextmanager
def _created(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file for a run. Raises: UnavailableError."""
    try:
        with published(path) as file:
            yield file
    except OSError as error:
        raise UnavailableError(f"{path} cannot be written: {error.strerror}") from error
