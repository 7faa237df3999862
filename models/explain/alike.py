"""The time of runs that share with a run what the rest of its cohort does not have: software, or how it was placed.

Such groups are told from records, not from samples: the time of the runs that are alike, against the cohort's usual
one, is what the shared thing costs. That they ran at other times as well, nothing here can tell.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.features import cohort_key
from crosswind.models.explain.reference import FEWEST_RUNS, usual_of
from crosswind.models.explain.segments import COLUMNS, Segments

PHASES = ("compute", "fabric")  # what software and placement can slow
Mark = tuple[object, ...]


def of_runs_alike(
    runs: Sequence[Run],
    segments: Mapping[str, Segments],
    ranks: Sequence[Rank],
    switches: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[str, str, float]]:
    """Run id, column and seconds a segment: of each phase what the *other* runs of its software, or placement, took.

    Only of cohorts that are divided, and where three others at least stand on either side. `switches` are the nodes'
    leaf switches as far as they are known.
    """
    nodes: dict[str, list[str]] = {}
    for rank in ranks:
        nodes.setdefault(rank.run_id, []).append(rank.node)
    for members in _cohorts([run for run in runs if run.run_id in segments]):
        means = np.array([_means(segments[run.run_id]) for run in members])
        marks: dict[str, list[Mark]] = {
            "software": [tuple(sorted(run.software.items())) for run in members],
            "placement": _placements([nodes.get(run.run_id, []) for run in members], switches),
        }
        for name, of_runs in marks.items():
            for run, seconds in _told(members, of_runs, means):
                yield from ((run.run_id, f"{name}_{phase}", took) for phase, took in zip(PHASES, seconds, strict=True))


def _placements(runs: Sequence[Sequence[str]], switches: Mapping[str, str]) -> list[Mark]:
    """Of each run, given as the nodes of its ranks: how many share a node, and a leaf switch where all are known."""
    if not all(node in switches for nodes in runs for node in nodes):
        return [_sizes(nodes) for nodes in runs]
    return [(_sizes(nodes), _sizes([switches[node] for node in nodes])) if nodes else () for nodes in runs]


def _sizes(places: Sequence[str]) -> Mark:
    return tuple(sorted(Counter(places).values()))


def _cohorts(runs: Sequence[Run]) -> list[list[Run]]:
    cohorts: dict[str, list[Run]] = {}
    for run in runs:
        cohorts.setdefault(cohort_key(run), []).append(run)
    return list(cohorts.values())


def _means(segments: Segments) -> list[float]:
    return [float(segments.values[:, COLUMNS.index(phase)].mean()) for phase in PHASES]


def _told(runs: Sequence[Run], marks: Sequence[Mark], means: np.ndarray) -> Iterator[tuple[Run, list[float]]]:
    sizes = Counter(marks)
    for place, (run, mark) in enumerate(zip(runs, marks, strict=True)):
        if mark and sizes[mark] > FEWEST_RUNS and len(runs) - sizes[mark] >= FEWEST_RUNS:
            others = [other_mark == mark and other != place for other, other_mark in enumerate(marks)]
            yield run, usual_of(means[others]).tolist()
