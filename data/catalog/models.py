"""Models in the catalog: their versions, and which one is promoted."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Select, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.model import Change, Evidence, Learned, ModelRecord, ModelState
from crosswind.data.schema.part import Part

NEWEST = tables.models.c.version.desc()


class Models:
    """Versions of models, over one connection. Who changes a name's versions is alone until the session ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def next_version(self, name: str) -> int:
        """The number that the next version has; nobody else gets it while this session lasts."""
        self._lock(name)
        newest = select(func.max(tables.models.c.version)).where(tables.models.c.name == name)
        return int(self._connection.execute(newest).scalar() or 0) + 1

    def add(self, record: ModelRecord) -> None:
        """Stores a new version."""
        rows.add(self._connection, tables.models, _row(record))

    def get(self, name: str, version: int) -> ModelRecord:
        """One version. Raises: NotFoundError."""
        record = self._first(_of(name).where(tables.models.c.version == version))
        if record is None:
            raise NotFoundError(f"version {version} of model {name!r} is not in the catalog")
        return record

    def versions(self, name: str) -> list[ModelRecord]:
        """Every version, newest first. Raises: NotFoundError."""
        records = self._records(_of(name).order_by(NEWEST))
        if not records:
            raise NotFoundError(f"model {name!r} is not in the catalog")
        return records

    def part(self, name: str, part: Part) -> list[ModelRecord]:
        """Return a part of a model's versions, in the order of any column that holds no object.

        Raises: NotFoundError for an unknown model.
        """
        records = self._records(part_of(_of(name), part, tables.models.c[part.by], tables.models.c.version))
        if not records and self.newest(name) is None:
            raise NotFoundError(f"model {name!r} is not in the catalog")
        return records

    def all(self) -> list[ModelRecord]:
        """Every version of every model, by name, newest first."""
        return self._records(select(tables.models).order_by(tables.models.c.name, NEWEST))

    def newest(self, name: str) -> ModelRecord | None:
        """The version made last."""
        return self._first(_of(name).order_by(NEWEST))

    def promoted(self, name: str) -> ModelRecord | None:
        """The version that answers, if any does."""
        return self._first(_of(name).where(tables.models.c.state == ModelState.PROMOTED))

    def promote(self, name: str, version: int, *, at_ns: int, reason: str) -> ModelRecord:
        """Lets this version answer; the one that did is retired. Raises: NotFoundError."""
        self._lock(name)
        chosen, present = self.get(name, version), self.promoted(name)
        if present is not None and present.version == version:
            return present
        if present is not None:
            self._move(present, Change(at_ns, ModelState.RETIRED, f"version {version} was promoted"))
        return self._move(chosen, Change(at_ns, ModelState.PROMOTED, reason))

    def demote(self, name: str, version: int, *, at_ns: int, reason: str) -> ModelRecord | None:
        """Takes the promoted version back; the one promoted before it answers again, and is returned, if there is any.

        Raises: NotFoundError, ConflictError when another version is promoted, or none.
        """
        self._lock(name)
        self.get(name, version)
        present, earlier = self._promoted_version(name, version), self._promoted_before(name)
        self._move(present, Change(at_ns, ModelState.DEMOTED, reason))
        if earlier is None:
            return None
        return self._move(earlier, Change(at_ns, ModelState.PROMOTED, f"version {version} was taken back: {reason}"))

    def rollback(self, name: str, *, at_ns: int, reason: str, version: int | None = None) -> ModelRecord:
        """Lets the version answer that was promoted before the present one.

        Raises: NotFoundError, ConflictError without one, or when another version than this is promoted.
        """
        self._lock(name)
        self.versions(name)
        present = self.promoted(name) if version is None else self._promoted_version(name, version)
        earlier = self._promoted_before(name)
        if present is None or earlier is None:
            raise ConflictError(f"model {name!r} has no version that was promoted before the present one")
        return self.demote(name, present.version, at_ns=at_ns, reason=reason) or earlier

    def _promoted_version(self, name: str, version: int) -> ModelRecord:
        """The promoted version, which is this one. Raises: ConflictError."""
        present = self.promoted(name)
        if present is None or present.version != version:
            which = "none" if present is None else f"version {present.version}"
            raise ConflictError(f"version {version} of model {name!r} is not promoted: {which} is")
        return present

    def _promoted_before(self, name: str) -> ModelRecord | None:
        """The retired version promoted last: one that was demoted does not come back by itself."""
        retired = _of(name).where(tables.models.c.state == ModelState.RETIRED)
        return self._first(retired.order_by(tables.models.c.promoted_ns.desc(), NEWEST))

    def _move(self, record: ModelRecord, change: Change) -> ModelRecord:
        values: dict[str, object] = {"state": change.state, "note": change.reason}
        if change.state is ModelState.PROMOTED:
            values["promoted_ns"] = change.at_ns
        history = [asdict(entry) for entry in (*record.history, change)]
        key = {"name": record.name, "version": record.version}
        rows.change(self._connection, tables.models, key, history=history, **values)
        return self.get(record.name, record.version)

    def _lock(self, name: str) -> None:
        rows.hold(self._connection, f"model {name}")

    def _first(self, query: Select[Any]) -> ModelRecord | None:
        return next(iter(self._records(query.limit(1))), None)

    def _records(self, query: Select[Any]) -> list[ModelRecord]:
        return [_record(dict(row)) for row in self._connection.execute(query).mappings()]


def _of(name: str) -> Select[Any]:
    return select(tables.models).where(tables.models.c.name == name)


def _row(record: ModelRecord) -> dict[str, Any]:
    evidence, learned = record.evidence, record.evidence.learned
    plain = ("name", "version", "state", "made_ns", "file_name", "digest", "promoted_ns", "note")
    return {
        **{name: getattr(record, name) for name in plain},
        "from_ns": learned.from_ns,
        "to_ns": learned.to_ns,
        "rows": learned.rows,
        "features": list(learned.features),
        "lineage": {"parent": record.parent, "sources": dict(learned.sources), "code_version": record.code_version},
        "metrics": {
            "validated_rows": evidence.validated_rows,
            "loss": evidence.loss,
            "baselines": dict(evidence.baselines),
            "row_losses": list(evidence.row_losses),
        },
        "coverage": [list(point) for point in evidence.coverage],
        "history": [asdict(change) for change in record.history],
    }


def _record(row: Mapping[str, Any]) -> ModelRecord:
    window = {name: row[name] for name in ("rows", "from_ns", "to_ns")}
    lineage, metrics = row["lineage"], row["metrics"]
    evidence = Evidence(
        learned=Learned(**window, features=tuple(row["features"]), sources=lineage["sources"]),
        coverage=tuple((level, share) for level, share in row["coverage"]),
        **{**metrics, "row_losses": tuple(metrics["row_losses"])},
    )
    history = tuple(Change(**{**entry, "state": ModelState(entry["state"])}) for entry in row["history"])
    plain = {name: row[name] for name in ("name", "version", "made_ns", "file_name", "digest", "promoted_ns", "note")}
    origin = {"parent": lineage["parent"], "code_version": lineage["code_version"]}
    return ModelRecord(**plain, **origin, state=ModelState(row["state"]), evidence=evidence, history=history)
