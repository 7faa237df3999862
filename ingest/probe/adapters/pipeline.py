"""PyTorch's pipeline parallelism: a schedule, or one of its stages.

Transfers between stages are named by direction, `pipeline stage1>stage2 1>2` (stages, then ranks). A stage receives
when it has nothing else to do, so that the durations of transfers to it are the pipeline's bubbles; it may wait for
its sends as late as at the end of the batch. Source: torch/distributed/pipelining/schedules.py.
"""

from collections.abc import Sequence
from typing import Any, Final

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls, watch_calls_of

CLASSES: Final = (
    "torch.distributed.pipelining._PipelineSchedule",
    "torch.distributed.pipelining._PipelineStageBase",
)


def matches(thing: Any) -> bool:
    """Return whether it is a schedule or a stage of torch.distributed.pipelining."""
    return is_kind(thing, *CLASSES)


def watch(thing: Any, timeline: Timeline) -> Any:
    """Report transfers between stages. Raises: InvalidInputError when a stage is on neither CPU nor GPU."""
    for stage in _stages(thing):
        calls = watch_calls_of(stage.submod, timeline)
        calls.groups.call_transfers(_group(stage), "pipeline", _by_rank(stage.stage_index_to_group_rank))
    watch_calls(timeline)
    return thing


def _stages(thing: Any) -> Sequence[Any]:
    """Return the stages of this rank."""
    if hasattr(thing, "submod"):
        return [thing]
    return thing._stages if hasattr(thing, "_stages") else [thing._stage]


def _group(stage: Any) -> Any:
    from torch import distributed  # noqa: PLC0415 - torch is the user's

    return stage.group or distributed.group.WORLD


def _by_rank(ranks: dict[int, int]) -> dict[int, str]:
    """Return the name of each rank of the group: its stages, mostly one."""
    stages: dict[int, str] = {}
    for stage, rank in sorted(ranks.items()):
        stages[rank] = f"{stages[rank]}+{stage}" if rank in stages else f"stage{stage}"
    return stages
