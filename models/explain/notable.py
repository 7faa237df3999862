"""Causes that stand out of what a cohort's runs differ by: in a run against its cohort, or in one of its ranks.

The ranks of one run share its machine's pace. So what a rank spends more than the others is held against what ranks of
the cohort's runs do: that tells a disturbed rank apart while the pace drifts from run to run, and two ranks that are
disturbed each in another way, of which the later one hides the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.causes.cause import Cause
from crosswind.models.explain.reference import Reference, contrasts_of, reference_of
from crosswind.models.explain.segments import COLUMNS, Segments
from crosswind.models.explain.split import UNEXPLAINED, shared

# All of these were chosen on the lab's runs of `train` and `calibrate` and on one plan of fresh ones, so that no more
# than one in fifty undisturbed runs is called slow.
SPREADS = 2.75  # of a cause's evidence, within which a share is the cohort's usual variability
SMALLEST_SHARE = 0.05  # of the expected time, below which a cause is hardly worth a word
CLEAR_SPREADS, CLEAR_SHARE = 10.0, 0.025  # beyond so many, also one that is half as large
USUAL = 0.2  # of the runs that show as much, from which on that is usual
BY_NAME: Mapping[str, Cause] = {cause.name: cause for cause in CAUSES}


@dataclass(frozen=True)
class Notable:
    """A cause that stands out, by so many seconds a segment; the row of a rank, None where against the cohort."""

    cause: str
    seconds: float
    rank: int | None


@dataclass(frozen=True)
class Compared:
    """Shares of some rows of means, the run's or its ranks', against what they are compared with."""

    means: Floats
    reference: Reference
    shares: Mapping[str, Floats]

    @classmethod
    def whole(cls, run: Segments, cohort: Sequence[Segments]) -> Self:
        """The run against its cohort: one row."""
        return cls._of(run.means[None, :], reference_of(cohort))

    @classmethod
    def ranks(cls, run: Segments, cohort: Sequence[Segments]) -> Self | None:
        """Every rank against the others of its run, and that against the cohort's: a row each; None of one rank."""
        peers = [other for other in cohort if len(other.of_ranks)]
        if not len(run.of_ranks) or not peers:
            return None
        return cls._of(run.contrasts(), contrasts_of(peers))

    @classmethod
    def _of(cls, means: Floats, reference: Reference) -> Self:
        return cls(means, reference, shared(means, reference))

    def notable(self, expected_time: float) -> Iterator[tuple[str, int, float]]:
        """Cause, row and seconds of every share that stands out."""
        for name, seconds in self.shares.items():
            if name != UNEXPLAINED:
                for row in np.flatnonzero(self._is_beyond(name, seconds, expected_time)):
                    if self._alike(name, int(row)) < USUAL:
                        yield name, int(row), float(seconds[row])

    def _is_beyond(self, cause: str, seconds: Floats, expected_time: float) -> NDArray[np.bool_]:
        """Phases differ from run to run by themselves: the spreads of a cause's columns add up as independent ones."""
        usual = np.sqrt(np.nansum([self.reference.spread[column] ** 2 for column in BY_NAME[cause].columns]))
        least = np.array([SMALLEST_SHARE, CLEAR_SHARE]) * expected_time
        spreads = np.array([spreads_of(self.reference.runs, SPREADS), CLEAR_SPREADS]) * usual
        return np.asarray((seconds[:, None] > np.maximum(least, spreads)).any(axis=1))

    def _alike(self, cause: str, row: int) -> float:
        columns = BY_NAME[cause].columns
        places = [COLUMNS.index(column) for column in columns]
        beyond = float(np.nansum((self.means[row] - self.reference.usual)[places]))
        return self.reference.alike(columns, beyond)


@lru_cache(maxsize=1000)
def spreads_of(runs: float, spreads: float) -> float:
    """So many spreads of a normal distribution, and as improbably many of Student's where they come of few runs."""
    return float(t.isf(norm.sf(spreads), max(runs - 1, 1)))


def notable(whole: Compared, ranks: Compared | None, expected_time: float) -> list[Notable]:
    """Every cause that stands out, once, the largest first: against the cohort, or on the rank where it is more."""
    by_cause = {name: Notable(name, seconds, None) for name, _, seconds in whole.notable(expected_time)}
    for name, row, seconds in ranks.notable(expected_time) if ranks else ():
        if name not in by_cause or by_cause[name].seconds < seconds:
            by_cause[name] = Notable(name, seconds, row)
    return sorted(by_cause.values(), key=lambda finding: finding.seconds, reverse=True)
