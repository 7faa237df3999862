"""Versions of Python and Crosswind, which each process of a cluster and each task on it must share with us."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self, TypeVar

from distributed import Client, Future, get_worker

from crosswind.data.schema.errors import ConflictError

PACKAGE = "crosswind"
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Versions:
    """The versions of one process: Python's, such as 3.11, and Crosswind's, None without it."""

    python: str
    crosswind: str | None

    @classmethod
    def here(cls) -> Self:
        """Return those of this process."""
        try:
            own = version(PACKAGE)
        except PackageNotFoundError:
            own = None
        return cls(f"{sys.version_info.major}.{sys.version_info.minor}", own)

    @classmethod
    def reported(cls, versions: Mapping[str, Any]) -> Self:
        """Return those of a process by what Dask says of it."""
        python = ".".join(str(versions["host"]["python"]).split(".")[:2])
        return cls(python, versions["packages"].get(PACKAGE))

    def check(self, name: str, other: "Versions", *, is_scheduler: bool = False) -> None:
        """Refuse a process of these versions for one of ours; a scheduler needs no Crosswind. Raises: ConflictError."""
        if other.python != self.python:
            raise ConflictError(f"{name} of the cluster has Python {other.python}, expected {self.python} as here")
        if other.crosswind != self.crosswind and not (is_scheduler and other.crosswind is None):
            held = "no Crosswind" if other.crosswind is None else f"Crosswind {other.crosswind}"
            raise ConflictError(f"{name} of the cluster has {held}, expected {self.crosswind} as here")


def submit(client: Client, work: Callable[..., Any], *arguments: Any, **options: Any) -> Future:
    """Have work done by a worker, which may have come long after the cluster was looked at.

    The future raises ConflictError when that worker has other versions than this process.
    """
    return client.submit(_checked, Versions.here(), work, *arguments, **options)


def _checked(expected: Versions, work: Callable[..., Answer], *arguments: Any) -> Answer:
    expected.check(get_worker().address, Versions.here())
    return work(*arguments)
