"""The verdict on a run with its numbers, as lists show it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunVerdict:
    """Outcome of a run's steps after warm-up, and the verdict on it; None where it is unknown or not computed yet.

    Measured, expected and excess are seconds over all steps, the excess with its 90 % interval.
    """

    run_id: str
    steps: int | None = None
    step_p50_seconds: float | None = None
    step_mean_seconds: float | None = None
    step_cov_ratio: float | None = None
    verdict: str | None = None
    cause: str | None = None
    measured_seconds: float | None = None
    expected_seconds: float | None = None
    excess_seconds: float | None = None
    excess_low_seconds: float | None = None
    excess_high_seconds: float | None = None
