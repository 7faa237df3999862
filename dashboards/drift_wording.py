"""The drift of a model in words."""

from crosswind.dashboards.wording import count, number, percent
from crosswind.models.registry.drift import FALSE_ALARM, Drift


def drift_words(drift: Drift) -> str:
    """Return how well later runs fit a model, with the numbers and limits of both tests."""
    if not drift.rows:
        return "no later run says yet whether it drifts"
    tests = [words for words in (_claim_words(drift), _loss_words(drift)) if words]
    of_rows = f"of {count(drift.rows, 'later run')}"
    if not tests:
        return f"too few were validated to judge drift {of_rows}"
    return f"{'it drifts' if drift.reason else 'no drift is seen'}: {of_rows} {', and '.join(tests)}"


def _claim_words(drift: Drift) -> str:
    if drift.coverage_odds is None:
        return ""
    return f"{drift.worst} (odds of drift {number(drift.coverage_odds)}, limit {number(1 / FALSE_ALARM)})"


def _loss_words(drift: Drift) -> str:
    if drift.loss is None:
        return ""
    change = f"the loss is {percent(drift.loss)}, in validation {percent(drift.expected_loss)}"
    return f"{change} (CUSUM {number(drift.loss_excess)}, limit {number(drift.loss_limit)})"
