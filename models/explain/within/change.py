"""The step from which on a run's own steps took longer: its earlier ones say what to expect of it."""

from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.answers.explanations import StepChange
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.reference import TIME, Reference
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import PHASES
from crosswind.models.explain.split import Split, resampled, split
from crosswind.models.forecast.change_points import Segment, segments

SHORTEST = 5  # segments that a level must last
SLOWED = 1.2  # times the median of all segments before; steps of one run differ by less themselves


@dataclass(frozen=True)
class Change:
    """A change of a run's own steps; `parts` split the excess of all its segments over those before it."""

    steps: StepChange
    parts: Split


def change_of(run: Segments) -> Change | None:
    """Return the first lasting level of segments that is clearly above all before it; None where there is none."""
    times = run.values[:, : len(PHASES)].sum(axis=1)
    if len(run.steps) < 2 * SHORTEST or times.min() <= 0:
        return None
    levels = segments(times, shortest=SHORTEST)
    for place, level in enumerate(levels[1:], start=1):
        before = float(np.median(times[: level.first]))
        if level.level >= SLOWED * before:
            slow = _slow_since(levels[place:], before)
            return _change(run, before, Segment(_placed(times, slow, before), slow.end, slow.level))
    return None


def _placed(times: Floats, slow: Segment, before: float) -> int:
    """Return the segment where the two levels fit best: those between them may lie on either side."""
    begin = max(slow.first - SHORTEST, 0)
    since = float(np.median(times[slow.first : slow.end]))
    around = times[begin : slow.end]
    nearer = np.abs(np.log(around / since)) - np.abs(np.log(around / before))
    return begin + int(np.argmax(np.concatenate([[0.0], np.cumsum(nearer)])))


def _slow_since(levels: list[Segment], before: float) -> Segment:
    """Return the levels that are slow one after the other as one, up to the first that is not."""
    end = next((level.first for level in levels if level.level < SLOWED * before), levels[-1].end)
    return Segment(levels[0].first, end, 0.0)


def _change(run: Segments, before: float, slow: Segment) -> Change:
    times = run.values[:, : len(PHASES)].sum(axis=1)
    last = int(run.steps[slow.end - 1]) if slow.end < len(times) else None
    since = float(np.median(times[slow.first : slow.end]))
    return Change(StepChange(int(run.steps[slow.first]), last, before, since), _parts(run, slow.first))


def _parts(run: Segments, first: int) -> Split:
    """Split the excess of all segments over those before `first`; both sides are redrawn."""
    random = np.random.default_rng(2)
    earlier, later = run.values[:first], run.values[first:]
    usual = earlier.mean(axis=0)
    reference = Reference(usual[None, :], usual, dict.fromkeys((*COLUMNS, TIME), 0.0))
    again = (resampled(later, random) - resampled(earlier, random)) * (len(later) / len(run.values))
    return split(run.means, reference, again=again)
