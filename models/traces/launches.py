"""Work of devices and the calls that launched it."""

from dataclasses import dataclass

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Integers, Kind


@dataclass(frozen=True)
class Launches:
    """Positions in a trace's events: of work of devices, and of the call that launched each, NONE where not traced."""

    device: Integers
    call: Integers


def launches(events: Events) -> Launches:
    """Return the work of devices with its calls, by correlation."""
    device = np.flatnonzero(events.kind <= Kind.COPY)
    calls = np.flatnonzero(np.isin(events.kind, (Kind.CALL, Kind.SYNC)) & (events.correlation != NONE))
    if not len(calls):
        return Launches(device, np.full(len(device), NONE))
    calls = calls[np.argsort(events.correlation[calls], kind="stable")]
    wanted = events.correlation[device]
    place = np.minimum(np.searchsorted(events.correlation[calls], wanted), len(calls) - 1)
    is_launched = (events.correlation[calls[place]] == wanted) & (wanted != NONE)
    return Launches(device, np.where(is_launched, calls[place], NONE))
