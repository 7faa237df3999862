"""Doubts about what a trial came to: where a known external cause took of its run's time, it is measured again.

A neighbour, a full file system or a hot node says nothing of the configuration. What no run was spared in the end is
reported with the share that was lost, as an outcome.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from crosswind.cli.verbs.tune.outbox import TrialResult
from crosswind.data.schema.trial import TrialState

if TYPE_CHECKING:
    from crosswind.data.schema.answers.studies import Disturbance

REPEATS = 2  # of a trial at most: a site may be disturbed all day
LOST = "disturbed_ratio"  # the outcome that tells what was lost of a run that is believed in the end

Judge = Callable[[str], "Disturbance | None"]  # of a run's id; None where it cannot be judged


@dataclass
class Doubts:
    """One trial's runs so far: the share of each that external causes took, and what it came to."""

    judge: Judge
    _measured: list[tuple[float, TrialResult]] = field(default_factory=list)

    def wants_again(self, result: TrialResult | None) -> bool:
        """Return whether the trial is to be measured again, which is said on the error output; asked once a run."""
        if result is None or result.state is not TrialState.DONE or result.run_id is None:
            return False
        verdict = self.judge(result.run_id)
        is_disturbed = verdict is not None and verdict.is_disturbed
        lost = sum(cause.ratio for cause in verdict.lost) if verdict and is_disturbed else 0.0
        self._measured.append((lost, result))
        if verdict is None or not is_disturbed:
            return False
        is_last = len(self._measured) > REPEATS
        end = f"That was the last of {REPEATS} repeats: the least disturbed run counts." if is_last else ""
        sys.stderr.write(f"crosswind: trial {result.trial_id}: {verdict.sentence} {end}".rstrip() + "\n")
        return not is_last

    def believed(self, result: TrialResult | None) -> TrialResult | None:
        """Return the report on a trial whose last is `tell`: `tell` if it gives back, else the least disturbed one."""
        if not self._measured or (result is not None and result.state is None):
            return result
        lost, least = min(self._measured, key=lambda run: run[0])
        return replace(least, outcomes={**least.outcomes, LOST: lost}) if lost else least
