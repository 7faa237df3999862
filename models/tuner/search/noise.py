"""The scatter of the same configuration from one measurement to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.repeated_process import RepeatedProcess
from crosswind.models.tuner.search.repeats import Repeats

EXPECTED = 0.05  # relative; step times of training runs scatter by 1 to 10 %, runs on shared nodes by more
EXPECTED_OF_SPREAD = 0.1  # of objectives that are not all positive
EVIDENCE = 0.01  # below this probability of equal variances, configurations get noise of their own
SHRINKAGE_DEGREES = 4.0  # repeats that the common variance counts for in each configuration's own
NOTHING = 1e-12


@dataclass(frozen=True)
class Noise:
    """Standard deviation of one measurement, relative where `is_relative`, else in the objective's unit.

    `deviation` is that of an average configuration, as sure as from `degrees` + 1 repeats; `deviations` (n,) are those
    of all configurations, alike unless the repeats contradict.
    """

    deviation: float
    degrees: float
    deviations: Floats
    is_relative: bool

    @classmethod
    def of(cls, repeats: Repeats) -> Self:
        """Return the noise, from scatter of repeats and misfit of a smooth surface, shrunken to a few per cent.

        Raises: InvalidInputError without a measurement.
        """
        return cls.from_process(fitted(repeats), repeats)

    @classmethod
    def from_process(cls, process: RepeatedProcess, repeats: Repeats) -> Self:
        """Return the noise of a process that was fitted to the repeats."""
        deviations = process.noise * np.sqrt(process.measured.variances)
        return cls(process.noise, process.noise_degrees, deviations, repeats.is_logarithmic)


def fitted(repeats: Repeats) -> RepeatedProcess:
    """Return the process of the objectives, or of their logarithms where all are positive.

    Raises: InvalidInputError without a measurement.
    """
    return process_of(repeats.points, repeats.on_scale, is_relative=repeats.is_logarithmic)


def process_of(points: Floats, groups: Sequence[Floats], *, is_relative: bool) -> RepeatedProcess:
    """Return the process of groups of values on their scale, one for each of the points (n, n_coordinates).

    The noise is shrunken to a few per cent where values are logarithms, else to a tenth of their spread.
    Raises: InvalidInputError without a value.
    """
    spread = float(np.std([group.mean() for group in groups])) if groups else 0.0
    expected = EXPECTED if is_relative else max(EXPECTED_OF_SPREAD * spread, NOTHING)
    return RepeatedProcess.of(points, groups, expected_noise=expected, variances=relative_variances(groups))


def relative_variances(groups: Sequence[Floats]) -> Floats:
    """Return each group's noise variance relative to the common one, (n,): 1 for all unless the repeats contradict.

    Where they do, every group's own variance is shrunken towards the common one, and a group without repeats has the
    common one. Source: Bartlett 1937 for the evidence.
    """
    repeated = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in repeated)
    squares = np.array([float(np.sum((group - group.mean()) ** 2)) for group in groups])
    if len(repeated) < 2 or not _differ(repeated):
        return np.ones(len(groups))
    common = float(squares.sum()) / degrees
    own = np.array([len(group) - 1 for group in groups])
    return np.asarray((SHRINKAGE_DEGREES + squares / common) / (SHRINKAGE_DEGREES + own), np.float64)


def _differ(repeated: Sequence[Floats]) -> bool:
    # A group without any scatter has no logarithm of a variance: it gets the rounding of its numbers.
    from scipy.stats import bartlett  # noqa: PLC0415 - half a second, and few studies have repeats

    scattered = [group for group in repeated if float(group.std()) > NOTHING]
    return len(scattered) > 1 and float(bartlett(*scattered).pvalue) < EVIDENCE
