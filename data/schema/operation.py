"""Operations: long work that is asked for, done in the background, and outlives the process that began it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class OperationState(StrEnum):
    """The state of an operation."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


OPEN = frozenset({OperationState.WAITING, OperationState.RUNNING})


@dataclass(frozen=True)
class Operation:
    """One piece of long work; while it runs, `owner` has the right to it until `lease_until_ns`."""

    operation_id: str
    kind: str
    arguments: Mapping[str, str]
    made_ns: int
    state: OperationState = OperationState.WAITING
    started_ns: int | None = None
    ended_ns: int | None = None
    progress: float = 0.0  # share that is done, as far as the work reports it
    attempts: int = 0  # how often it was begun
    result: Mapping[str, str | int | None] = field(default_factory=dict)
    error: str | None = None
    owner: str | None = None
    lease_until_ns: int | None = None
