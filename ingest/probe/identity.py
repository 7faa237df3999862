"""The run id of this process: the same on all ranks of the run, and unique to it."""

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.probe.place import Place

CONFIGURATION = "CROSSWIND_CONFIGURATION"
MEETING = "crosswind/run"
MEETING_SECONDS = 60.0


@dataclass(frozen=True)
class Made:
    """A rank of a run in this process: its steps, and why it failed, if it did."""

    rank: int
    steps: int
    reason: str | None


_recorded: Counter[str] = Counter()  # runs of this process that made steps, by their given id
_made: list[Made] = []  # the runs of this process that are over, without those that made no step
_meetings = itertools.count(1)  # of this process, one a run that it agreed on


def given_id(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the id that `crosswind run` gives to its ranks; None without it.

    Ranks that torchrun restarts may be fewer or more, and count their steps from 0: they are a run of their own, and so
    is a second recording in one process.
    """
    base = environment.get("CROSSWIND_RUN_ID")
    if not base:
        return None
    restarts, earlier = environment.get("TORCHELASTIC_RESTART_COUNT", "0"), _recorded[base]
    again = f"-restart{restarts}" if restarts.isdigit() and int(restarts) else ""
    return f"{base}{again}-part{earlier + 1}" if earlier else f"{base}{again}"


def note_recorded(
    rank: int, steps: int, reason: str | None = None, environment: Mapping[str, str] = os.environ
) -> None:
    """Note that a run of this process has made steps and is over: the next one is another run."""
    if base := environment.get("CROSSWIND_RUN_ID"):
        _recorded[base] += 1
        _made.append(Made(rank, steps, reason))


def last_made() -> Made | None:
    """Return what this process last made under `crosswind run`; None if it made no step."""
    return _made[-1] if _made else None


def given_configuration(environment: Mapping[str, str] = os.environ) -> Configuration:
    """Return the configuration that `crosswind run` has read from its command line; empty without it."""
    try:
        value = json.loads(environment.get(CONFIGURATION, "{}"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def agreed_id(place: Place) -> str:
    """Return a fresh run id for all ranks of the run, shared through the store at which the ranks met.

    A rank that enters no run blocks the others only for a time, and no collective of the program is paired with ours.
    Raises: InvalidInputError when ranks have no way to agree; UnavailableError when rank 0 enters no run.
    """
    if place.world_size == 1:
        return new_ulid()
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_initialized():
        raise InvalidInputError(
            f"{place.world_size} ranks have no run id in common: start them by `crosswind run -- ...`, "
            "set CROSSWIND_RUN_ID, or enter crosswind.run() after init_process_group()"
        )
    key, store = f"{MEETING}/{next(_meetings)}", distributed.distributed_c10d._get_default_store()
    if distributed.get_rank() == 0:
        run_id = new_ulid()
        store.set(key, run_id)
        return run_id
    try:
        store.wait([key], timedelta(seconds=MEETING_SECONDS))
    except RuntimeError as error:  # PyTorch's DistStoreError is one
        raise UnavailableError(f"rank 0 has entered no run in {MEETING_SECONDS:.0f} s") from error
    return str(store.get(key).decode())
