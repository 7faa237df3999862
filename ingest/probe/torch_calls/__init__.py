"""Collectives launched through PyTorch's Python API: this rank's arrival, the end of its wait, bytes and group.

All Python code that communicates, in whatever library, goes through a few places: the methods of
`ProcessGroup` and `Work`, and, for functional collectives (DTensor), the packets of `torch.ops._c10d_functional`.
Those are replaced while a run is open. So it does not matter who imported which function by name, a collective counts
once however deep the functions around it are nested, and compiled code of `torch.compile` is neither seen nor changed.

Not seen: collectives that are launched from C++ (gradient buckets of DistributedDataParallel) or from compiled code,
those on accelerators other than CUDA's, and those without a `Work.wait()`. The end of one that was done before its wait
is unknown. On a GPU a wait is the queue's: it counts as exposed if it is in the loop's stream; coalesced transfers, as
in batches of sends and receives, are not reported there.
"""

import sys
from collections.abc import Iterable
from typing import Any

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.probe.cuda_events import follow
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.calls import Calls
from crosswind.ingest.probe.torch_calls.functional import watch_functional
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.torch_calls.process_groups import watch_process_groups, watching


def watch_calls(timeline: Timeline) -> Calls:
    """Report every collective launched from Python until the run ends; once, however often called.

    Raises: InvalidInputError when another open run of this process watches them.
    """
    calls = watching()
    if calls is None:
        calls, patches = Calls(timeline), Patches()
        timeline.on_close(calls.switch_off)
        timeline.on_close(patches.undo)
        watch_process_groups(calls, patches)
        watch_functional(calls, patches)
    elif calls.timeline is not timeline:
        raise InvalidInputError("watch: another open run of this process watches torch.distributed already")
    return calls


def watch_calls_of(model: Any, timeline: Timeline) -> Calls:
    """Watch all calls for a model's sake. Raises: InvalidInputError for one on another device than a CPU or GPU."""
    _follow_device_of(model.parameters(), timeline)
    return watch_calls(timeline)


def watch_training(parameters: Iterable[Any], timeline: Timeline) -> None:
    """Time steps by the device of these parameters, and watch all calls if this is one of several ranks.

    Raises: as `watch_calls_of`.
    """
    _follow_device_of(parameters, timeline)
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        watch_calls(timeline)


def _follow_device_of(parameters: Iterable[Any], timeline: Timeline) -> None:
    device = next((parameter.device for parameter in parameters), None)
    if device is not None:
        follow(device, timeline)
