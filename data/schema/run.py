"""Runs and their ranks."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.trial import Configuration


class RunState(StrEnum):
    """The state of a run; `lost` ended without a word (node down, kill -9), `stopped` by Ctrl-C or SIGTERM."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(frozen=True)
class Run:
    """One execution of one workload with one configuration; times in ns UTC, None when unknown.

    `user` is the login name of whoever ran it, `account` who pays; a shared run may be seen by everybody.
    """

    run_id: str
    workload: str
    system: str
    state: RunState
    world_size: int | None = None
    configuration: Configuration = field(default_factory=dict)
    job_id: str | None = None
    nodes: tuple[str, ...] = ()
    started_ns: int | None = None
    ended_ns: int | None = None
    exit_code: int | None = None
    command: tuple[str, ...] = ()
    software: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    user: str | None = None
    account: str | None = None
    shared: bool = False

    @property
    def seconds(self) -> float | None:
        """Run time in seconds, once it has ended."""
        if self.started_ns is None or self.ended_ns is None:
            return None
        return (self.ended_ns - self.started_ns) * 1e-9


def cohort_key(run: Run) -> str:
    """Names the runs that may be compared: one workload, configuration and scale on one system."""
    return json.dumps([run.system, run.workload, dict(run.configuration), run.world_size], sort_keys=True)


def cohort_digest(run: Run) -> str:
    """Return 32 characters that are the same for runs that may be compared."""
    return hashlib.sha256(cohort_key(run).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Rank:
    """One process of a run: where it ran and how its clock stood against rank 0."""

    run_id: str
    rank: int
    node: str
    pid: int
    started_ns: int
    ended_ns: int | None = None
    clock_offset_ns: int | None = None


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32


def new_ulid() -> str:
    """A fresh identifier that sorts by time: 48 bits of milliseconds, 80 random bits.

    Source: github.com/ulid/spec.
    """
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def begun_ns(ulid: str) -> int | None:
    """Return when an identifier of `new_ulid` was made, to the millisecond; None of any other."""
    if len(ulid) != 26 or set(ulid) - set(ALPHABET):
        return None
    milliseconds = 0
    for letter in ulid[:10]:
        milliseconds = milliseconds << 5 | ALPHABET.index(letter)
    return milliseconds * 1_000_000 if milliseconds < 1 << 43 else None  # ns of 63 bits
