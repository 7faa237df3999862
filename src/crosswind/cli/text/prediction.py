"""Predictions as a terminal shows them."""

import textwrap
from collections.abc import Sequence

from crosswind.cli.text.energy import forecast_words
from crosswind.cli.text.output import colour, printable, table
from crosswind.dashboards.wording import number, percent, seconds
from crosswind.data.schema.answers.advice import WalltimeAdvice
from crosswind.data.schema.answers.predictions import Accuracy, MemoryNeed, Quantile, QuestionKind, RunPrediction

ROOM = 80  # columns of a terminal
NAME_MIN = 12  # letters that are left of a long name
GIGABYTE = 1e9
YELLOW = "33"
OUTCOME_WORDS = {
    "step_p50_seconds": "median step of the next run",
    "run_seconds": "run time of the next run",
    "job_seconds": "run time of the next job",
}
ENERGY_OF = {"step_p50_seconds": "energy of a step", "run_seconds": "energy", "job_seconds": "energy"}
BASES = {
    "cohort": "{cohort_runs} runs of this configuration and scale on this system",
    "workload": "{runs} runs of the workload, none of this configuration and scale on this system",
    "transfer": "{runs} runs of the workload, none on this system",
    "analytic": "closed-form times of what the configuration says; the workload never ran",
}
KINDS = {
    QuestionKind.REPEAT: "of repeats",
    QuestionKind.CONFIGURATION: "of new configurations",
    QuestionKind.SCALE: "of larger scales",
    QuestionKind.SYSTEM: "on new systems",
    QuestionKind.WORKLOAD: "of new workloads",
}


def answer_text(answer: RunPrediction) -> str:
    """Return the distribution in one line, then its basis and accuracy."""
    lines = [f"{OUTCOME_WORDS[answer.outcome]}: {band(answer.quantiles)}"]
    if answer.exceedance is not None:
        lines.append(f"longer than {seconds(answer.limit_seconds)}: {chance(answer.exceedance)}")
    if answer.energy is not None:
        lines.append(line(ENERGY_OF[answer.outcome], forecast_words(answer.energy)))
    return "\n".join([*lines, *basis_lines(answer), *_memory(answer.memory), *_evidence(answer)])


def walltime_text(answer: WalltimeAdvice) -> str:
    """Return the line for sbatch, what is taken for granted, and what the advice rests on."""
    limit, begun = answer.limit, answer.startup_seconds
    before = f", after {seconds(begun)} of starting up" if begun else ""
    taken = f"with {percent(limit.confidence)}: the run takes at most {seconds(limit.quantile_seconds)}{before}"
    return "\n".join([limit.directive, line("enough", taken), *basis_lines(answer.answer)])


def band(quantiles: Sequence[Quantile]) -> str:
    """The median and the 90 % interval: `4.62 s [2.93 s .. 11.3 s]`."""
    level = {quantile.level: quantile.seconds for quantile in quantiles}
    return f"{seconds(level[0.5])} [{seconds(level[0.05])} .. {seconds(level[0.95])}]"


def chance(probability: float) -> str:
    """Return a probability in words that claim no more than the quantiles."""
    if probability <= 0.01:
        return "at most 1 %"
    return "at least 95 %" if probability >= 0.95 else percent(probability)


def basis_lines(answer: RunPrediction) -> list[str]:
    """Return the basis of an answer, its accuracy, and warnings."""
    lines = [
        line("from", BASES[answer.basis].format(cohort_runs=answer.cohort_runs, runs=answer.runs)),
        *_accuracy(answer.worth),
    ]
    if answer.is_outside:
        lines.append(colour(line("outside", f"{_far(answer.distance)}: the interval is a guess"), YELLOW))
    return [*lines, *(line("warning", warning) for warning in answer.warnings)]


def line(what: str, words: str) -> str:
    """`what: words`, broken where a terminal ends."""
    return textwrap.fill(
        printable(f"{what}: {words}"), ROOM, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _accuracy(accuracy: Accuracy) -> list[str]:
    if accuracy.kind is None:
        return []
    of_kind = KINDS[accuracy.kind]
    if not accuracy.runs:
        return [line("accuracy", f"unknown, too few runs {of_kind} to test it")]
    on = f"cohorts held out, as {of_kind}" if accuracy.is_held_out else f"later runs {of_kind}"
    scores = []
    if accuracy.median_error is not None:
        scores.append(f"median error {percent(accuracy.median_error)}")
    if accuracy.skill is not None:
        compared = "less" if accuracy.skill >= 0 else "MORE"
        scores.append(f"{percent(abs(accuracy.skill))} {compared} loss than always the median")
    if accuracy.coverage_90 is not None:
        scores.append(f"{percent(accuracy.coverage_90)} inside the 90 % interval")
    return [line("accuracy", f"on {accuracy.runs} {on}: {', '.join(scores)}")]


def _far(distance: float | None) -> str:
    if distance is None:
        return "no run to compare with"
    if distance <= 1:
        return "nothing ran on this system, or on such a device"
    return f"{number(distance)} times as far from the nearest run as runs usually are"


def _memory(memory: MemoryNeed | None) -> list[str]:
    if memory is None:
        return []
    needed = f"{number(memory.bytes / GIGABYTE)} GB on the fullest rank by formulas"
    if memory.device is None or memory.device_bytes is None:
        return [line("memory", needed)]
    fits = "which fits" if memory.fits else "which does NOT fit"
    has = f"{number(memory.device_bytes / GIGABYTE)} GB"
    text = line("memory", f"{needed}, {memory.device} has {has}: {fits}")
    return [text if memory.fits else colour(text, YELLOW)]


def _evidence(answer: RunPrediction) -> list[str]:
    """Return the nearest runs, without columns in which all are as the question."""
    runs = answer.evidence
    if not runs:
        return []
    names = [
        name for name in ("workload", "system") if any(getattr(run, name) != getattr(answer, name) for run in runs)
    ]
    headings = ("nearest run", *names, "ranks", "took", "distance")
    rows = [
        (
            run.run_id,
            *(str(getattr(run, name)) for name in names),
            str(run.world_size),
            seconds(run.seconds),
            number(run.distance),
        )
        for run in runs
    ]
    return ["", _narrow(headings, rows)]


def _narrow(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table with names cut, but not the first column's, so far that it fits a terminal."""
    text = table(headings, rows)
    for width in range(ROOM, NAME_MIN - 1, -1):
        if max(map(len, text.splitlines())) <= ROOM:
            break
        text = table(headings, [(row[0], *(_cut(cell, width) for cell in row[1:])) for row in rows])
    return text


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else f"{cell[: width - 1]}…"
