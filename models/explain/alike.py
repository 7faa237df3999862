"""What runs took that share something with a run which the rest of its cohort does not: software, or how it was placed.

Such groups are told from records, not from samples: the time of the runs that are alike, against the cohort's usual
one, is what the shared thing costs. That they ran at other times as well, nothing here can tell.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from crosswind.data.features import cohort_key
from crosswind.data.run import Rank, Run
from crosswind.models.explain.reference import FEWEST_RUNS, usual_of
from crosswind.models.explain.segments import COLUMNS, Segments

PHASES = ("compute", "fabric")  # what software and placement can slow
Mark = tuple[object, ...]


def of_runs_alike(
    runs: Sequence[Run], segments: Mapping[str, Segments], ranks: Sequence[Rank]
) -> Iterator[tuple[str, str, float]]:
    """Run id, column and seconds a segment: of each phase what the *other* runs of its software, or placement, took.

    Only of cohorts that are divided, and where three others at least stand on either side.
    """
    nodes: dict[str, Counter[str]] = {}
    for rank in ranks:
        nodes.setdefault(rank.run_id, Counter())[rank.node] += 1
    marks: Mapping[str, Callable[[Run], Mark]] = {
        "software": lambda run: tuple(sorted(run.software.items())),
        "placement": lambda run: tuple(sorted(nodes.get(run.run_id, Counter()).values())),
    }
    for members in _cohorts([run for run in runs if run.run_id in segments]):
        means = np.array([_means(segments[run.run_id]) for run in members])
        for name, mark in marks.items():
            for run, seconds in _told(members, [mark(run) for run in members], means):
                yield from ((run.run_id, f"{name}_{phase}", each) for phase, each in zip(PHASES, seconds, strict=True))


def _cohorts(runs: Sequence[Run]) -> list[list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(cohort_key(run), []).append(run)
    return list(found.values())


def _means(segments: Segments) -> list[float]:
    return [float(segments.values[:, COLUMNS.index(phase)].mean()) for phase in PHASES]


def _told(runs: Sequence[Run], marks: Sequence[Mark], means: np.ndarray) -> Iterator[tuple[Run, list[float]]]:
    sizes = Counter(marks)
    for place, (run, mark) in enumerate(zip(runs, marks, strict=True)):
        if mark and sizes[mark] > FEWEST_RUNS and len(runs) - sizes[mark] >= FEWEST_RUNS:
            others = [each == mark and other != place for other, each in enumerate(marks)]
            yield run, usual_of(means[others]).tolist()
