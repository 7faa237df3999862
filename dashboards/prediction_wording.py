"""The basis and the accuracy of a prediction in words."""

from crosswind.dashboards.wording import count, number, percent
from crosswind.data.schema.answers.predictions import Accuracy, QuestionKind, RunPrediction

BASES = {
    "cohort": "{cohort_runs} of this configuration and scale on this system",
    "workload": "{runs} of the workload, none of this configuration and scale on this system",
    "transfer": "{runs} of the workload, none on this system",
    "analytic": "closed-form times of what the configuration says; the workload never ran",
}
KINDS = {
    QuestionKind.REPEAT: "of repeats",
    QuestionKind.CONFIGURATION: "of new configurations",
    QuestionKind.SCALE: "of larger scales",
    QuestionKind.SYSTEM: "on new systems",
    QuestionKind.WORKLOAD: "of new workloads",
}


def basis_words(answer: RunPrediction) -> str:
    """Return the runs that an answer rests on."""
    of_cohort, of_all = count(answer.cohort_runs, "run"), count(answer.runs, "run")
    return BASES[answer.basis].format(cohort_runs=of_cohort, runs=of_all)


def accuracy_words(accuracy: Accuracy) -> str:
    """Return the score of such answers on runs that they were not learned from; empty where none is meant."""
    if accuracy.kind is None:
        return ""
    of_kind = KINDS[accuracy.kind]
    if not accuracy.runs:
        return f"unknown, too few runs {of_kind} to test it"
    held_out, later = count(accuracy.runs, "cohort"), count(accuracy.runs, "later run")
    on = f"{held_out} held out, as {of_kind}" if accuracy.is_held_out else f"{later} {of_kind}"
    scores = []
    if accuracy.median_error is not None:
        scores.append(f"median error {percent(accuracy.median_error)}")
    if accuracy.skill is not None:
        compared = "less" if accuracy.skill >= 0 else "MORE"
        scores.append(f"{percent(abs(accuracy.skill))} {compared} loss than always the median")
    if accuracy.coverage_90 is not None:
        scores.append(f"{percent(accuracy.coverage_90)} inside the 90 % interval")
    return f"on {on}: {', '.join(scores)}"


def outside_words(answer: RunPrediction) -> str:
    """Return how far an answer that is outside what was seen lies from it."""
    return f"{_far(answer.distance)}: the interval is a guess"


def _far(distance: float | None) -> str:
    if distance is None:
        return "no run to compare with"
    if distance <= 1:
        return "nothing ran on this system, or on such a device"
    return f"{number(distance)} times as far from the nearest run as runs usually are"


def chance(probability: float) -> str:
    """Return a probability in words that claim no more than the quantiles."""
    if probability <= 0.01:
        return "at most 1 %"
    return "at least 95 %" if probability >= 0.95 else percent(probability)
