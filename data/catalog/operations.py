"""Operations in the catalog: who works on each, and until when."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Select, and_, or_, select, update

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.operation import OPEN, Operation, OperationState

ATTEMPTS_MAX = 3  # whatever ends its process so often would end the next one too
TABLE = tables.operations


class Operations:
    """Long work, over one connection; leases run on the caller's clock."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add_unless_open(self, operation: Operation) -> Operation:
        """Stores a new operation, or returns the one of the same kind and arguments that waits or runs."""
        rows.hold(self._connection, f"operations {operation.kind}")
        is_open = and_(TABLE.c.kind == operation.kind, TABLE.c.state.in_(sorted(OPEN)))
        for active in self._operations(select(TABLE).where(is_open).order_by(TABLE.c.operation_id)):
            if dict(active.arguments) == dict(operation.arguments):
                return active
        rows.add(self._connection, TABLE, asdict(operation))
        return operation

    def get(self, operation_id: str) -> Operation:
        """One operation. Raises: NotFoundError."""
        row = rows.fetch(self._connection, TABLE, operation_id=operation_id)
        if row is None:
            raise NotFoundError(f"operation {operation_id!r} is not in the catalog")
        return _operation(row)

    def find(self, kind: str, *, states: Collection[OperationState] = tuple(OperationState)) -> list[Operation]:
        """Operations of a kind, newest first."""
        wanted = and_(TABLE.c.kind == kind, TABLE.c.state.in_(sorted(states)))
        return self._operations(select(TABLE).where(wanted).order_by(TABLE.c.operation_id.desc()))

    def is_any_free(self, now_ns: int, *, names: Collection[str]) -> bool:
        """Return whether an operation could be begun whose argument `name` is one of these."""
        return bool(self._operations(_free(now_ns, names).limit(1)))

    def claim(
        self, owner: str, *, now_ns: int, lease_until_ns: int, names: Collection[str], operation_id: str | None = None
    ) -> Operation | None:
        """The oldest operation that waits or whose owner is gone, or the named one if it is such; now the owner's.

        `names` are the values of the argument `name` that the owner knows how to do; a newer server may know more.
        None when nothing is free. What was begun ATTEMPTS_MAX times and never ended has failed.
        """
        self._give_up(now_ns)
        free = _free(now_ns, names)
        if operation_id is not None:
            free = free.where(TABLE.c.operation_id == operation_id)
        # SQLite has no row locks: there a session that writes has the whole database to itself.
        operations = self._operations(free.limit(1).with_for_update(skip_locked=True))
        if not operations:
            return None
        lease = {"owner": owner, "lease_until_ns": lease_until_ns, "state": OperationState.RUNNING}
        self._change(operations[0], started_ns=now_ns, attempts=operations[0].attempts + 1, progress=0.0, **lease)
        return self.get(operations[0].operation_id)

    def beat(self, operation_id: str, owner: str, *, lease_until_ns: int, progress: float | None = None) -> None:
        """Renews the lease. Raises: NotFoundError, ConflictError when it is not the owner's any more."""
        values: dict[str, object] = {"lease_until_ns": lease_until_ns}
        self._change(self._held(operation_id, owner), **values | ({} if progress is None else {"progress": progress}))

    def release(self, operation_id: str, owner: str) -> None:
        """Gives a begun operation back: it waits, as if never begun. Raises: NotFoundError, ConflictError."""
        held = self._held(operation_id, owner)
        waiting = {"state": OperationState.WAITING, "started_ns": None, "owner": None, "lease_until_ns": None}
        self._change(held, attempts=held.attempts - 1, progress=0.0, **waiting)

    def finish(
        self, operation_id: str, owner: str, *, now_ns: int, result: Mapping[str, str | int | None]
    ) -> Operation:
        """Ends it well. Raises: NotFoundError, ConflictError when it is not the owner's any more."""
        done = {"state": OperationState.DONE, "progress": 1.0, "result": dict(result)}
        self._change(self._held(operation_id, owner), ended_ns=now_ns, lease_until_ns=None, **done)
        return self.get(operation_id)

    def fail(self, operation_id: str, owner: str, *, now_ns: int, error: str) -> Operation:
        """Ends it without a result. Raises: NotFoundError, ConflictError when it is not the owner's any more."""
        failed = {"state": OperationState.FAILED, "error": error, "lease_until_ns": None}
        self._change(self._held(operation_id, owner), ended_ns=now_ns, **failed)
        return self.get(operation_id)

    def _held(self, operation_id: str, owner: str) -> Operation:
        operations = self._operations(select(TABLE).where(TABLE.c.operation_id == operation_id).with_for_update())
        if not operations:
            raise NotFoundError(f"operation {operation_id!r} is not in the catalog")
        if operations[0].state is not OperationState.RUNNING or operations[0].owner != owner:
            by = f" by {operations[0].owner!r}" if operations[0].owner else ""
            raise ConflictError(f"operation {operation_id} is {operations[0].state}{by}, expected running by {owner!r}")
        return operations[0]

    def _give_up(self, now_ns: int) -> None:
        is_hopeless = and_(_is_abandoned(now_ns), TABLE.c.attempts >= ATTEMPTS_MAX)
        why = f"begun {ATTEMPTS_MAX} times, and its process ended each time before it did"
        values = {"state": OperationState.FAILED, "ended_ns": now_ns, "error": why, "lease_until_ns": None}
        self._connection.execute(update(TABLE).where(is_hopeless).values(**values))

    def _change(self, operation: Operation, **values: object) -> None:
        rows.change(self._connection, TABLE, {"operation_id": operation.operation_id}, **values)

    def _operations(self, query: Select[Any]) -> list[Operation]:
        return [_operation(dict(row)) for row in self._connection.execute(query).mappings()]


def _is_abandoned(now_ns: int) -> Any:
    return and_(TABLE.c.state == OperationState.RUNNING, TABLE.c.lease_until_ns < now_ns)


def _free(now_ns: int, names: Collection[str]) -> Select[Any]:
    is_waiting = TABLE.c.state == OperationState.WAITING
    is_wanted = TABLE.c.arguments["name"].as_string().in_(sorted(names))
    return select(TABLE).where(is_wanted, or_(is_waiting, _is_abandoned(now_ns))).order_by(TABLE.c.operation_id)


def _operation(row: Mapping[str, Any]) -> Operation:
    return Operation(**{**row, "state": OperationState(row["state"])})
