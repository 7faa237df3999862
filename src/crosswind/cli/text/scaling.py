"""A scaling curve as a terminal shows it."""

from collections.abc import Sequence

from crosswind.cli.text.output import colour, table
from crosswind.cli.text.prediction import YELLOW, line
from crosswind.dashboards.energy_wording import power_words
from crosswind.dashboards.wording import count, number, percent, seconds
from crosswind.data.schema.answers.advice import ScalePoint, ScalingAdvice
from crosswind.data.schema.answers.predictions import RunPrediction

PRICED = (("energy", "joules", 3.6e6, "kWh"), ("cost", "cost", 1, ""), ("CO2", "carbon_grams", 1e3, "kg"))
HEADINGS = ("nodes", "run time", "90 % interval", "speedup", "efficiency", "node-hours")
BASES = {
    "cohort": "runs of this configuration and scale",
    "workload": "other runs of the workload on this system",
    "transfer": "runs of the workload on other systems",
    "analytic": "closed-form times of what the configuration says",
}


def scaling_text(advice: ScalingAdvice) -> str:
    """Return a line for each number of nodes, the costs, the advice, and its basis."""
    points, answers = advice.curve.points, advice.answers
    counts = [str(point.node_count) for point in points]
    lines = [table(HEADINGS, [_line(point) for point in points]), *_prices(points), "", _advice(advice), ""]
    lines += _energy_from(answers, points)
    for basis, words in BASES.items():
        if of_it := _where(counts, [answer.basis == basis for answer in answers]):
            lines.append(line("from", f"{words}: {of_it}"))
    if unsure := _where(counts, [answer.is_outside for answer in answers]):
        words = f"nothing near {unsure} ever ran; the intervals there are guesses"
        lines.append(colour(line("outside", words), YELLOW))
    if small := _where(counts, [answer.memory is not None and answer.memory.fits is False for answer in answers]):
        lines.append(colour(line("memory", f"by formulas it does NOT fit on {small}"), YELLOW))
    everywhere = [warning for warning in answers[0].warnings if all(warning in other.warnings for other in answers)]
    return "\n".join([*lines, *(line("warning", warning) for warning in everywhere)])


def _line(point: ScalePoint) -> tuple[str, ...]:
    return (
        str(point.node_count),
        seconds(point.seconds),
        f"{seconds(point.low_seconds)} .. {seconds(point.high_seconds)}",
        number(point.speedup),
        percent(point.efficiency),
        number(point.node_hours),
    )


def _prices(points: Sequence[ScalePoint]) -> list[str]:
    """A table of what was priced; none where nothing was."""
    priced = [price for price in PRICED if getattr(points[0], price[1]) is not None]
    if not priced:
        return []
    rows = [
        (
            str(point.node_count),
            *(_priced(getattr(point, field), size, unit) for _, field, size, unit in priced),
        )
        for point in points
    ]
    return ["", table(("nodes", *(name for name, *_ in priced)), rows)]


def _priced(value: float | None, size: float, unit: str) -> str:
    return number(None) if value is None else f"{number(value / size)} {unit}".rstrip()


def _energy_from(answers: Sequence[RunPrediction], points: Sequence[ScalePoint]) -> list[str]:
    """The basis of the joules, where the request did not give the watts of a node."""
    metered = (answer.energy for answer, point in zip(answers, points, strict=True) if point.energy_origin)
    energy = next(metered, None)
    return [] if energy is None else [line("energy", power_words(energy))]


def _advice(advice: ScalingAdvice) -> str:
    curve = advice.curve
    which = f"knee {curve.knee}, fewest node-hours {curve.cheapest}, fastest {curve.fastest}"
    if advice.advised is None:
        return f"no number of nodes keeps the deadline with 95 % ({which})"
    return f"request {count(advice.advised, 'node')}{_change(advice.change)} ({which})"


def _change(change: int | None) -> str:
    if change is None:
        return ""
    return f": expand by {change}" if change > 0 else f": shrink by {-change}" if change < 0 else ": stay"


def _where(counts: Sequence[str], claims: Sequence[bool]) -> str:
    """`1, 4 nodes`; empty where nothing is claimed."""
    claimed = [node_count for node_count, claim in zip(counts, claims, strict=True) if claim]
    return f"{', '.join(claimed)} {'node' if claimed == ['1'] else 'nodes'}" if claimed else ""
