"""Significant causes: beyond what a cohort's runs differ by, in a run against its cohort or in one of its ranks.

The ranks of one run share its machine's pace. So the time that a rank spends more than the others is compared with that
of ranks of the cohort's runs: this separates a disturbed rank while the pace drifts from run to run, and two ranks that
are disturbed in different ways, of which the later one masks the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.reference import Reference, contrasts_of, reference_of
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.split import UNEXPLAINED, shared

# All of these were chosen on the lab's runs of `train` and `calibrate` and on one plan of fresh ones, so that no more
# than one in fifty undisturbed runs is called slow.
SPREADS = 2.75  # of a cause's evidence, within which a share is the cohort's usual variability
SMALLEST_SHARE = 0.05  # of the expected time, below which a cause is hardly worth a word
CLEAR_SPREADS, CLEAR_SHARE = 10.0, 0.025  # beyond so many, also one that is half as large
USUAL = 0.2  # of the runs that show as much, from which on that is usual


@dataclass(frozen=True)
class Finding:
    """A significant cause, by so many seconds a segment; `rank` is its row, None where against the cohort.

    Of an unknown cause, `phase` is where it is and `contenders` are what it may be.
    """

    cause: str
    seconds: float
    rank: int | None
    phase: str | None = None
    contenders: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComparedShares:
    """Shares of causes in some rows of means, the run's or its ranks', against a reference.

    `means` has shape (n_rows, len(COLUMNS)); `shares` maps causes to seconds a segment, shape (n_rows,).
    """

    means: Floats
    reference: Reference
    shares: Mapping[str, Floats]

    @classmethod
    def of_run(cls, run: Segments, cohort: Sequence[Segments]) -> Self:
        """Compare the run with its cohort: one row."""
        return cls._of(run.means[None, :], reference_of(cohort))

    @classmethod
    def of_ranks(cls, run: Segments, cohort: Sequence[Segments]) -> Self | None:
        """Compare every rank's contrast to its run with the cohort's: a row a rank; None for a single rank."""
        peers = [other for other in cohort if len(other.of_ranks)]
        if not len(run.of_ranks) or not peers:
            return None
        return cls._of(run.contrasts(), contrasts_of(peers))

    @classmethod
    def _of(cls, means: Floats, reference: Reference) -> Self:
        return cls(means, reference, shared(means, reference))

    def significant(self, expected_time: float) -> Iterator[tuple[str, int, float]]:
        """Yield cause, row and seconds of every significant share; expected_time: of a segment, seconds."""
        for name, seconds in self.shares.items():
            if name != UNEXPLAINED:
                for row in np.flatnonzero(self._is_beyond(name, seconds, expected_time)):
                    if self._share_alike(name, int(row)) < USUAL:
                        yield name, int(row), float(seconds[row])

    def _is_beyond(self, cause: str, seconds: Floats, expected_time: float) -> NDArray[np.bool_]:
        """Phases differ from run to run by themselves: the spreads of a cause's columns add up as independent ones."""
        usual = np.sqrt(np.nansum([self.reference.spread[column] ** 2 for column in BY_NAME[cause].columns]))
        least = np.array([SMALLEST_SHARE, CLEAR_SHARE]) * expected_time
        spreads = np.array([student_spreads(self.reference.runs, SPREADS), CLEAR_SPREADS]) * usual
        return np.asarray((seconds[:, None] > np.maximum(least, spreads)).any(axis=1))

    def _share_alike(self, cause: str, row: int) -> float:
        columns = BY_NAME[cause].columns
        places = [COLUMNS.index(column) for column in columns]
        beyond = float(np.nansum((self.means[row] - self.reference.usual)[places]))
        return self.reference.share_alike(columns, beyond)


@lru_cache(maxsize=1000)
def student_spreads(runs: float, spreads: float) -> float:
    """Return as improbably many spreads of Student's distribution, of so few runs, as of a normal one."""
    return float(t.isf(norm.sf(spreads), max(runs - 1, 1)))


def findings_of(run: ComparedShares, ranks: ComparedShares | None, expected_time: float) -> list[Finding]:
    """Return every significant cause once, the largest first: against the cohort, or on the rank where it is more."""
    by_cause = {name: Finding(name, seconds, None) for name, _, seconds in run.significant(expected_time)}
    for name, row, seconds in ranks.significant(expected_time) if ranks else ():
        if name not in by_cause or by_cause[name].seconds < seconds:
            by_cause[name] = Finding(name, seconds, row)
    return sorted(by_cause.values(), key=lambda finding: finding.seconds, reverse=True)
