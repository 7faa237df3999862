"""Gaps of an explanation: what it cannot tell of a run, because nobody recorded it."""

import numpy as np

from crosswind.data.schema.run import Run
from crosswind.models.explain.segments import COLUMNS, OF_LINKS, OF_NODE, OF_THREAD, Segments


def missing_of(run: Run, segments: Segments | None) -> tuple[str, ...]:
    """Sentences: what was not recorded, and what cannot be told without it."""
    if segments is None:
        return ()
    sentences = []
    if run.world_size is not None and segments.ranks < run.world_size:
        recorded = f"{segments.ranks} of {run.world_size} ranks recorded steps"
        sentences.append(f"{recorded}: time lost by one of the others is told as the fabric's")
    if _nobody_recorded(segments, OF_THREAD):
        sentences.append(
            "no CPU time of the loop's thread was recorded: slow computing and contention cannot be told apart"
        )
    if _nobody_recorded(segments, (*OF_NODE, *OF_LINKS)):
        sentences.append("nothing was sampled on its nodes meanwhile: quotas, memory, clocks and links are not told")
    return tuple(sentences)


def _nobody_recorded(segments: Segments, names: tuple[str, ...]) -> bool:
    return bool(np.isnan(segments.values[:, [COLUMNS.index(name) for name in names]]).all())
