"""The sliders of the Predict page: values to try in place of one number of the run."""

from dataclasses import dataclass

from crosswind.data.schema.question import DEGREE_NAMES, RANKS_MAX, Question

DOUBLINGS = range(-3, 4)
PARAMETERS = 4  # of the configuration, the first


@dataclass(frozen=True)
class Knob:
    """Rising values to choose from, of which the one at `place` is in force; `parameter` is None of the ranks."""

    name: str
    parameter: str | None
    values: tuple[str, ...]
    place: int


def knobs_of(question: Question) -> tuple[Knob, ...]:
    """Return a slider of the ranks, and of each of the first parameters that are numbers above zero."""
    numbers = [
        (name, value)
        for name, value in question.configuration.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 and name not in DEGREE_NAMES
    ]
    parameters = (_knob(name, value, name) for name, value in numbers[:PARAMETERS])
    return (_knob("ranks", question.world_size, None), *parameters)


def _knob(name: str, now: float, parameter: str | None) -> Knob:
    """Return halves and doubles of a value; of a whole number whole ones."""
    around = {now * 2.0**power for power in DOUBLINGS}
    if isinstance(now, int):
        around = {now if value == now else round(value) for value in around if value >= 1}
    values = sorted(value for value in around if parameter is not None or value <= RANKS_MAX)
    return Knob(
        name,
        parameter,
        tuple(str(value) if isinstance(value, int) or value == now else f"{value:.4g}" for value in values),
        values.index(now),
    )
