"""Collectives that are asked of PyTorch from Python: when this rank came, when it was done waiting, bytes and group.

Everything in Python that communicates, whatever library it stands in, ends at a few places: the methods of
`ProcessGroup` and `Work`, and, for functional collectives (DTensor), the packets of `torch.ops._c10d_functional`.
Those are replaced while a run is open. So it does not matter who imported which function by name, a collective counts
once however deep the functions around it are nested, and what `torch.compile` compiles is neither seen nor changed.

Not seen: collectives that are launched from C++ (gradient buckets of DistributedDataParallel) or from compiled code,
those on accelerators but CUDA's, and those that nobody waits for by `Work.wait()`. Of one that was done before it was
waited for, nobody knows the end. On a GPU a wait is the queue's: it counts as exposed where it is in the loop's stream;
transfers that are coalesced, as batches of sends and receives, are not told there.
"""

from typing import Any

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.probe.cuda_events import follow
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.calls import Calls
from crosswind.ingest.probe.torch_calls.functional import watch_functional
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.torch_calls.process_groups import watch_process_groups, watching


def watch_calls(timeline: Timeline) -> Calls:
    """Has every collective that is asked for from Python reported until the run ends; once, however often called.

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
    """The same, for the sake of a model. Raises: InvalidInputError for one on another device than a CPU or GPU."""
    device = next((parameter.device for parameter in model.parameters()), None)
    if device is not None:
        follow(device, timeline)
    return watch_calls(timeline)
