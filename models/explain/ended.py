"""The end of a run in its explanation: which process failed first, and why there are no steps to explain."""

from dataclasses import replace

from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.failure import failure_words, failures_in
from crosswind.data.schema.run import Run, RunState

NO_STEPS = "no_steps"  # tag of `crosswind run`: why, and what to do
MEND = "Mend what failed first: other ranks often fail only because they lost that one."


def with_end(run: Run, explanation: Explanation) -> Explanation:
    """Return the explanation with what the run's processes said of its end."""
    failures = failures_in(run.tags) if run.state is RunState.FAILED else []
    if failures:
        explanation = replace(explanation, failure=failure_words(failures))
    if explanation.verdict is not Verdict.INSUFFICIENT_EVIDENCE:
        return explanation
    if failures:
        return replace(explanation, next_action=MEND)
    reason = run.tags.get(NO_STEPS)
    return replace(explanation, next_action=f"No steps: {reason}.") if reason and not explanation.steps else explanation
