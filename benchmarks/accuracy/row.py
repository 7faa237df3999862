"""One line of the table of accuracy."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """Figures reached on one task, beside baselines measured on the same rows by the same split.

    `figures` and each of `baselines` map a figure's name (`mape`, `median_ape`, `crps_skill`, `coverage_90` ...) to its
    value, all as ratios (0.21 = 21 %). `asked` says the aim in words, `holds` whether our figures reach it.
    """

    task: str
    split: str
    rows: int
    figures: Mapping[str, float]
    asked: str
    holds: bool
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    note: str = ""
