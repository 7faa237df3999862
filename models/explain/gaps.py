"""Gaps of an explanation: evidence that nobody recorded, and what stays unexplained without it."""

import numpy as np

from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import COLLECTIVES, NOT_SEEN
from crosswind.models.explain.causes import REFUSED
from crosswind.models.explain.cohort.columns import COLUMNS, SAMPLED_COLUMNS
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import THREAD


def gaps_of(run: Run, segments: Segments | None) -> tuple[str, ...]:
    """Return sentences without a full stop, one for each gap."""
    if segments is None:
        return ()
    sentences = []
    if run.world_size is not None and segments.ranks < run.world_size:
        recorded = f"{segments.ranks} of {run.world_size} ranks recorded steps"
        sentences.append(f"{recorded}: time lost by one of the others counts as the fabric's")
    if run.tags.get(COLLECTIVES) == NOT_SEEN:
        sentences.append("no wait for a collective was seen: time that ranks waited for each other counts as computing")
    if _is_missing(segments, (*THREAD,)):
        sentences.append(
            "no CPU time of the loop's thread was recorded: slow computing and contention cannot be distinguished"
        )
    if _is_missing(segments, SAMPLED_COLUMNS):
        sentences.append("nothing was sampled on its nodes meanwhile: quotas, memory, clocks and links are unknown")
    sentences += [f"cause {cause.name} of another package is left out: {cause.reason}" for cause in REFUSED]
    return tuple(sentences)


def _is_missing(segments: Segments, names: tuple[str, ...]) -> bool:
    return bool(np.isnan(segments.values[:, [COLUMNS.index(name) for name in names]]).all())
