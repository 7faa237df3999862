"""Adapters of `run.watch`, one for each framework: the first that matches watches the object."""

from collections.abc import Sequence
from typing import Any, Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.probe.adapters import (
    ddp,
    deepspeed,
    fsdp,
    horovod,
    jax,
    module,
    mpi,
    parameter_server,
    pipeline,
    spark,
    tensorflow,
)
from crosswind.ingest.probe.timeline import Timeline


class Adapter(Protocol):
    """A module that makes one framework's objects report their collectives."""

    def matches(self, thing: Any) -> bool:
        """Return whether this is an object of its framework, which is never imported for that."""
        ...

    def watch(self, thing: Any, timeline: Timeline) -> Any:
        """Return the object to use from now on, mostly the same. Raises: InvalidInputError, UnavailableError."""
        ...


ADAPTERS: Sequence[Adapter] = (
    ddp,
    fsdp,
    pipeline,
    deepspeed,
    module,
    parameter_server,
    mpi,
    jax,
    horovod,
    spark,
    tensorflow,
)


def watch(thing: Any, timeline: Timeline) -> Any:
    """Return the object to use in place of this one while it reports; the same when called again.

    Raises: InvalidInputError when no adapter matches.
    """
    if id(thing) in timeline.watched:
        return timeline.watched[id(thing)][1]
    for adapter in ADAPTERS:
        if adapter.matches(thing):
            watched = adapter.watch(thing, timeline)
            timeline.watched |= {id(alias): (alias, watched) for alias in (thing, watched)}
            return watched
    names = ", ".join(str(getattr(adapter, "__name__", adapter)).rpartition(".")[2] for adapter in ADAPTERS)
    raise InvalidInputError(f"watch({type(thing).__name__}): expected something of one of {names}")
