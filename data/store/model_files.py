"""Files of models: below the store's folder and, where the lake is in an object store, there too, for other servers."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.publish import hidden_name, publish
from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.model import ModelRecord

if TYPE_CHECKING:
    from crosswind.data.lake.objects.bucket import Bucket

FOLDER = "models"  # below the store's home
BYTES_MAX = 1 << 30  # of one file


@dataclass(frozen=True)
class ModelFiles:
    """The files of the versions in a catalog; `address` is the lake's, None for one in a folder."""

    home: Path
    address: LakeAddress | None = None

    def path(self, record: ModelRecord) -> Path:
        """Return where a version's file is, or would be."""
        return self.home / FOLDER / record.file_name

    def write(self, record: ModelRecord, content: bytes) -> None:
        """Keep the file of a new version, for every server. Raises: UnavailableError."""
        self._keep(record, content)
        if self.address is not None:
            _bucket(self.address).put(_key(record), self.path(record))

    def read(self, record: ModelRecord) -> bytes:
        """Return a version's file. Raises: UnavailableError without it, MalformedError when it was changed."""
        path = self.path(record)
        try:
            with path.open("rb") as file:
                content = file.read(BYTES_MAX + 1)
        except OSError as error:
            if self.address is None:
                raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
            return self._brought(record, self.address)
        if _is(content, record):
            return content
        if self.address is None:
            raise MalformedError(f"{path} is not the file that was registered: its digest differs")
        return self._brought(record, self.address)  # here is a draft, of a version that another server registered

    def _brought(self, record: ModelRecord, address: LakeAddress) -> bytes:
        content = _bucket(address).content(_key(record))
        if content is None:
            raise UnavailableError(f"lake {address}: object {_key(record)} cannot be read: it is not there")
        if not _is(content, record):
            raise MalformedError(f"lake {address}: object {_key(record)} is not what was registered")
        self._keep(record, content)
        return content

    def _keep(self, record: ModelRecord, content: bytes) -> None:
        path = self.path(record)
        try:
            hidden = hidden_name(self.home / FOLDER, path)
            try:
                hidden.write_bytes(content)
                publish(hidden, path)
            finally:
                hidden.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(f"{path} cannot be written: {error.strerror}") from error

    def bring_all(self, catalog: Catalog) -> None:
        """Copy the files of all versions here, where they are in an object store. Raises: as `read`."""
        for record in _records(catalog) if self.address is not None else ():
            self.read(record)

    def share_all(self, catalog: Catalog, address: LakeAddress) -> None:
        """Upload the files of all versions. Raises: UnavailableError, OSError."""
        for record in _records(catalog):
            _bucket(address).put(_key(record), self.path(record))


def _bucket(address: LakeAddress) -> "Bucket":
    from crosswind.data.lake.objects.bucket import Bucket  # noqa: PLC0415 - a local lake needs none of it

    return Bucket(address)


def _is(content: bytes, record: ModelRecord) -> bool:
    return hashlib.sha256(content).hexdigest() == record.digest


def _records(catalog: Catalog) -> list[ModelRecord]:
    with catalog.read() as session:
        return session.models.all()


def _key(record: ModelRecord) -> str:
    """Return the object of a version, which no other has: two servers may make the same one, of which one counts."""
    return f"{FOLDER}/{record.name}/{record.version}-{record.digest[:16]}.cwm"
