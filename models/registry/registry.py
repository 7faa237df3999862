"""The registry: fitted models under a name and a version, one of which is promoted."""

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version as version_of
from threading import Lock
from typing import Any

from crosswind.data.catalog.catalog import Session
from crosswind.data.schema.errors import (
    ConflictError,
    InvalidInputError,
    MalformedError,
    NotFoundError,
)
from crosswind.data.schema.model import Evidence, ModelRecord, ModelState
from crosswind.data.store.model_files import ModelFiles
from crosswind.data.store.store import Store
from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.registry.evidence import objection

NAMES = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
REASON_CHARACTERS_MAX = 1000
HELD_MAX = 8  # models in memory; each is some megabytes


@dataclass(frozen=True)
class Registered:
    """A version and its model, as it was saved; not to be changed, because the cache shares it."""

    record: ModelRecord
    model: Any


class Registry:
    """Versions of models in one store."""

    def __init__(self, store: Store, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._store = store
        self._files = ModelFiles(store.home, store.address)
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[tuple[str, int, str], Any] = OrderedDict()

    def register(self, name: str, model: object, evidence: Evidence) -> ModelRecord:
        """Saves a model as the next version, a candidate. Raises: InvalidInputError, UnavailableError."""
        content = pack(name, model)
        with self._store.catalog.write() as session:
            return self.add(session, name, content, evidence)

    def add(self, session: Session, name: str, content: bytes, evidence: Evidence) -> ModelRecord:
        """Saves a packed model as the next version, together with the session's other writes."""
        version, parent = session.models.next_version(name), session.models.promoted(name)
        record = ModelRecord(
            name=name,
            version=version,
            state=ModelState.CANDIDATE,
            made_ns=self._clock(),
            evidence=evidence,
            parent=parent.version if parent else None,
            code_version=version_of("crosswind"),
            file_name=f"{name}/{version}.cwm",
            digest=hashlib.sha256(content).hexdigest(),
        )
        # Before its row: a file without a row is overwritten by the next version, a row without a file would be damage.
        self._files.write(record, content)
        session.models.add(record)
        return record

    def promoted(self, name: str) -> ModelRecord | None:
        """The version that answers, without its model; None where none is promoted."""
        with self._store.catalog.read() as session:
            return session.models.promoted(name)

    def load(self, name: str, version: int | None = None) -> Registered:
        """A version, or the promoted one, with its model; cached in memory, for versions never change.

        Raises: NotFoundError, UnavailableError without the file, MalformedError when that was changed.
        """
        with self._store.catalog.read() as session:
            record = session.models.promoted(name) if version is None else session.models.get(name, version)
        if record is None:
            raise NotFoundError(f"no version of model {name!r} is promoted")
        key = (name, record.version, record.digest)
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return Registered(record, self._held[key])
        model = self._read(record)
        with self._lock:
            self._held[key] = model
            while len(self._held) > HELD_MAX:
                self._held.popitem(last=False)
        return Registered(record, model)

    def promote(self, name: str, version: int, *, forced_because: str | None = None) -> ModelRecord:
        """Promotes a version that beats every naive baseline, or any other for a reason, which is recorded.

        Raises: NotFoundError, ConflictError with the objection, InvalidInputError for an empty reason.
        """
        with self._store.catalog.write() as session:
            return self.promote_in(session, name, version, forced_because=forced_because)

    def promote_in(
        self, session: Session, name: str, version: int, *, forced_because: str | None = None
    ) -> ModelRecord:
        """Promotes within a session, together with its other writes."""
        forced = None if forced_because is None else f"forced: {_reason(forced_because)}"
        record = session.models.get(name, version)
        against = objection(record)
        if against and forced is None and record.state is not ModelState.PROMOTED:
            raise ConflictError(f"version {version} of model {name!r} is not promoted: {against}")
        reason = "it beats every baseline" if forced is None else forced
        return session.models.promote(name, version, at_ns=self._clock(), reason=reason)

    def rollback(self, name: str, reason: str, *, version: int | None = None) -> ModelRecord:
        """Promotes the version before the present one again; `version` is the present one, if known.

        Raises: NotFoundError, ConflictError without one or when another is promoted, InvalidInputError.
        """
        with self._store.catalog.write() as session:
            return session.models.rollback(name, at_ns=self._clock(), reason=_reason(reason), version=version)

    def demote(self, name: str, version: int, reason: str) -> ModelRecord | None:
        """Takes the promoted version back; the one before it is promoted again, or none.

        Raises: NotFoundError, ConflictError when this version is not promoted, InvalidInputError.
        """
        with self._store.catalog.write() as session:
            return session.models.demote(name, version, at_ns=self._clock(), reason=_reason(reason))

    def _read(self, record: ModelRecord) -> Any:
        content = self._files.read(record)
        try:
            return read_model(content)
        except MalformedError as error:
            raise MalformedError(f"{self._files.path(record)}: {error}") from error


def pack(name: str, model: object) -> bytes:
    """Return the model's file, after a test that it can be loaded. Raises: InvalidInputError."""
    check_name(name)
    content = write_model(model)
    try:
        read_model(content)
    except MalformedError as error:
        raise InvalidInputError(f"model {name!r} could not be loaded again: {error}") from error
    return content


def check_name(name: str) -> None:
    """Refuses invalid names of models. Raises: InvalidInputError."""
    if not NAMES.fullmatch(name):
        raise InvalidInputError(f"model name {name[:80]!r}: expected {NAMES.pattern}")


def _reason(text: str) -> str:
    if not text.strip() or len(text) > REASON_CHARACTERS_MAX:
        raise InvalidInputError(f"reason {text[:40]!r}: expected 1 to {REASON_CHARACTERS_MAX} characters")
    return text.strip()
