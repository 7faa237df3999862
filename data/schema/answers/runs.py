"""Runs with their moments as text, and their energy."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.energy import MeasuredEnergy
from crosswind.data.schema.answers.fields import fill_texts, text_of
from crosswind.data.schema.run import Run


@dataclass(frozen=True, kw_only=True)
class ListedRun(Run):
    """One execution of one workload with one configuration."""

    run_seconds: float | None
    started_at: str | None = field(default=None, metadata=text_of("started_ns"))
    ended_at: str | None = field(default=None, metadata=text_of("ended_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True, kw_only=True)
class MeasuredRun(ListedRun):
    """One run, and its energy where meters cover at least 90 % of it on every node."""

    energy: MeasuredEnergy | None
