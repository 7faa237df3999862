"""Questions that the store can answer now, for people."""

from typing import TYPE_CHECKING

from crosswind.cli.text.output import say
from crosswind.dashboards.wording import count

if TYPE_CHECKING:  # heavy
    from crosswind.data.store.capabilities import Kept


def say_capabilities(kept: "Kept") -> None:
    """Print the amounts stored, and for each kind of question whether it can be answered, and why."""
    from crosswind.data.store.capabilities import capabilities  # noqa: PLC0415 - heavy

    say(_stored(kept))
    for capability in capabilities(kept):
        say(f"  {capability.name}: {'yes' if capability.is_possible else 'no'}: {capability.because}")


def _stored(kept: "Kept") -> str:
    parts = []
    if kept.runs:
        cohorts = count(kept.cohorts, "cohort")
        parts.append(f"{count(kept.runs, 'run')} of {count(kept.workloads, 'workload')} in {cohorts}")
    if kept.jobs:
        parts.append(f"{count(kept.jobs, 'job')} of {count(kept.job_names, 'name')}")
    if kept.trials:
        parts.append(f"{count(kept.trials, 'trial')} of {kept.studies:,} {'study' if kept.studies == 1 else 'studies'}")
    return f"The store holds {'; '.join(parts) or 'no runs and no jobs yet'}. It can answer:"
