"""The stages of a pipeline, from the names of the groups of transfers between them."""

import re
from collections.abc import Iterable

from crosswind.data.lake.steps_summary import window_of
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store

NAMES = re.compile(r"pipeline (\S+)>(\S+) (\d+)>(\d+)")
_GROUPS = """select distinct "group" from collective where run_id = ? and "group" like 'pipeline %'"""


def stages_of(store: Store, run: Run) -> dict[int, str]:
    """The stage of each rank that sent or received between stages. Raises: MalformedError."""
    groups = store.lake.frame(_GROUPS, [run.run_id], within=window_of(run).within)["group"]
    return stages_in(groups.tolist())


def stages_in(groups: Iterable[str]) -> dict[int, str]:
    """The stage of each rank, from the names of groups."""
    stages: dict[int, str] = {}
    for group in groups:
        if match := NAMES.fullmatch(group):
            stages |= {int(match[3]): match[1], int(match[4]): match[2]}
    return stages


def stage_numbers(store: Store, run: Run, ranks: int) -> list[int] | None:
    """The number of each rank's stage; None unless transfers show it for every rank. Raises: MalformedError."""
    stage_of = stages_of(store, run)
    if set(stage_of) != set(range(ranks)):
        return None
    names = sorted(set(stage_of.values()))
    return [names.index(stage_of[rank]) for rank in range(ranks)]
