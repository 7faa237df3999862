"""What the store can answer now, for people."""

from crosswind.cli.output import say
from crosswind.data.possibilities import Kept, possibilities


def tell_possible(kept: Kept) -> None:
    """Says how much there is, and for each kind of question whether it can be answered, and why."""
    say(_stored(kept))
    for each in possibilities(kept):
        say(f"  {each.name}: {'yes' if each.is_possible else 'no'}: {each.because}")


def _stored(kept: Kept) -> str:
    parts = []
    if kept.runs:
        parts.append(f"{kept.runs:,} runs of {kept.workloads:,} workloads in {kept.cohorts:,} cohorts")
    if kept.jobs:
        parts.append(f"{kept.jobs:,} jobs of {kept.job_names:,} names")
    if kept.trials:
        parts.append(f"{kept.trials:,} trials of {kept.studies:,} studies")
    return f"The store holds {'; '.join(parts) or 'no runs and no jobs yet'}. What can be asked of it:"
