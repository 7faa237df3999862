"""The store: catalog and lake of one installation, below one folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.files import PRIVATE_FILE, make_private
from crosswind.data.lake.objects.bounded import end_idle
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.topology import switches_at
from crosswind.data.store.lakes import check_place, storage_of

if TYPE_CHECKING:
    from crosswind.data.lake.lake import Lake
    from crosswind.data.store.jobs import Jobs


@dataclass(frozen=True)
class Store:
    """The catalog, and the folder that it and the lake are in; what reads the lake is loaded when it is first used."""

    home: Path
    catalog: Catalog
    origin: "Store | None" = None  # with all rows, where this one shows fewer
    address: LakeAddress | None = None  # of the lake, where it is in an object store

    @property
    def rule(self) -> RowRule:
        """The rows that it shows."""
        return self.catalog.rule

    @property
    def whole(self) -> "Store":
        """The store with all rows: for what is computed of them and names none."""
        return self.origin or self

    def seen_by(self, rule: RowRule) -> "Store":
        """Return the same store with the rows that the rule lets be seen, in the catalog and in the lake."""
        return Store(self.home, self.whole.catalog.seen_by(rule), self.whole, self.address)

    @classmethod
    def open(cls, home: Path, *, database: str | None = None, lake: LakeAddress | None = None) -> Self:
        """The store below `home`, made on first use; `database` is a SQLAlchemy URL when the catalog is elsewhere.

        `lake` is the address of a lake in an object store; copies of what is read are kept below `home` then.

        Raises: UnavailableError, InvalidInputError, ConflictError.
        """
        try:
            make_private(home)
            (home / "catalog.sqlite").touch(mode=PRIVATE_FILE) if database is None else None
        except OSError as error:
            raise UnavailableError(f"store folder {home} cannot be made: {error.strerror}") from error
        engine = open_database(database or sqlite_url(home / "catalog.sqlite"))
        catalog = Catalog(engine)
        try:
            check_place(home, catalog, lake)
        except BaseException:
            catalog.close()
            raise
        return cls(home, catalog, address=lake)

    @cached_property
    def lake(self) -> "Lake":
        """The lake."""
        from crosswind.data.lake.lake import Lake  # noqa: PLC0415 - half a second, and studies have nothing in it

        if self.origin is None:
            storage = storage_of(self.home, self.catalog, self.address)
            return Lake(storage.root, storage)
        if self.rule.sees_all:
            return self.origin.lake
        from crosswind.data.store.seen import Cut  # noqa: PLC0415 - as above

        return self.origin.lake.through(Cut(self.catalog))

    def has_rows_of(self, name: str) -> bool:
        """Return whether the lake has rows of a set, without what reads the lake: a look at names of files."""
        if self.address is None:
            return next((self.home / "lake" / f"set={name}").glob("date=*/part-*.parquet"), None) is not None
        with self.catalog.read() as session:
            return name in session.lake_files.sets()

    @property
    def jobs(self) -> "Jobs":
        """The jobs that schedulers account for."""
        from crosswind.data.store.jobs import Jobs  # noqa: PLC0415 - as above

        return Jobs(self.lake, self.catalog)

    @property
    def switches(self) -> Mapping[str, str]:
        """By node its leaf switch, as the folder's topology.conf says. Raises: MalformedError."""
        return switches_at(self.home)

    def close(self) -> None:
        """Gives back the catalog's connections, and threads that wait to move objects."""
        self.catalog.close()
        if self.address is not None:
            end_idle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
