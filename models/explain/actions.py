"""Advice that comes with a verdict."""

from crosswind.data.schema.answers.explanations import UNKNOWN, Verdict
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.significance import Finding

WATCH = "Record at least 20 steps: for batch in run.steps(loader), and run.watch(model) for its collectives."
REPEAT = "Run the same workload and configuration at least three times: crosswind run -- CMD."
NOTHING = "Nothing to do: it took no longer than runs of its cohort usually do."
SAMPLE = "Record node counters beside the run (crosswind run does), or explain it again when more runs are stored."
PROFILE = (
    "Look at what that rank does there: py-spy dump --pid PID on its node while it runs, or torch.profiler in its "
    "loop; compare its data, its code path and its node with the others'."
)
PROFILE_ALL = (
    "Profile a step (torch.profiler, py-spy), and compare code, data and node with a quicker run: crosswind compare."
)


def advice(verdict: Verdict, first: Finding | None, rank: int | None) -> str:
    """Return the next action for a verdict, its first cause and the rank of that."""
    if first is None:
        return NOTHING if verdict is Verdict.NORMAL else SAMPLE
    if first.cause == UNKNOWN:
        return PROFILE_ALL if rank is None else PROFILE
    return BY_NAME[first.cause].next_action
