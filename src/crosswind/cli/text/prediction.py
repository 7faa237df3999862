"""Predictions as a terminal shows them."""

import textwrap
from collections.abc import Sequence

from crosswind.cli.text.output import colour, printable, table
from crosswind.dashboards.energy_wording import forecast_words
from crosswind.dashboards.prediction_wording import accuracy_words, basis_words, chance, outside_words
from crosswind.dashboards.wording import number, percent, seconds
from crosswind.data.schema.answers.advice import WalltimeAdvice
from crosswind.data.schema.answers.predictions import MemoryNeed, Quantile, RunPrediction

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


def basis_lines(answer: RunPrediction) -> list[str]:
    """Return the basis of an answer, its accuracy, and warnings."""
    lines = [
        line("from", basis_words(answer)),
        *([line("accuracy", words)] if (words := accuracy_words(answer.worth)) else []),
    ]
    if answer.is_outside:
        lines.append(colour(line("outside", outside_words(answer)), YELLOW))
    return [*lines, *(line("warning", warning) for warning in answer.warnings)]


def line(what: str, words: str) -> str:
    """`what: words`, broken where a terminal ends."""
    return textwrap.fill(
        printable(f"{what}: {words}"), ROOM, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


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
