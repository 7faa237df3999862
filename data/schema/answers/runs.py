"""Runs with their moments as text, the outcomes of their steps, their ranks and their energy."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.energy import MeasuredEnergy
from crosswind.data.schema.answers.fields import about, fill_texts, text_of
from crosswind.data.schema.run import Rank, Run


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


@dataclass(frozen=True, kw_only=True)
class RunOutcome(ListedRun):
    """One run and the times of its steps after warm-up, in seconds; null where it recorded none.

    The time of a step is that of its slowest rank; those of phases are means over steps and ranks.
    """

    cohort: str = field(metadata=about("the same for runs of one workload, configuration and scale on one system"))
    steps: int | None
    step_p05_seconds: float | None
    step_p50_seconds: float | None
    step_p95_seconds: float | None
    step_mean_seconds: float | None
    step_cov_ratio: float | None
    input_seconds: float | None
    compute_seconds: float | None
    comm_seconds: float | None
    checkpoint_seconds: float | None
    other_seconds: float | None


@dataclass(frozen=True)
class Latecomer:
    """A rank that others waited for at collectives: in how many steps, and by how much in the median of them."""

    rank: int
    steps: int
    share: float = field(metadata=about("of the steps in which ranks waited"))
    late_seconds: float | None = field(metadata=about("behind the rank before it"))


@dataclass(frozen=True)
class RunReport:
    """One run with everything that was recorded of it but its rows: the ranks in order, the latest ones first."""

    run: ListedRun
    outcome: RunOutcome
    ranks: tuple[Rank, ...]
    latecomers: tuple[Latecomer, ...]
    energy: MeasuredEnergy | None
