"""Record of a training program of `programs/`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from tests.ingest.probe.adapters.launched import RUN_ID
from tests.ingest.spooled import rows

from crosswind.data.schema.steps import LOOP_SETS, PHASES
from crosswind.data.store.arrivals import last_to_arrive
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool

STEPS, DELAY_SECONDS = 24, 0.1  # as in programs/rank.py


@dataclass(frozen=True)
class Trained:
    """The record of a training."""

    steps: pd.DataFrame
    collectives: pd.DataFrame  # `place` counts a rank's collectives of one group within a step
    progress: pd.DataFrame
    last: pd.DataFrame  # who came last to each collective, as users see it
    reports: Sequence[dict[str, bool]]
    server_log: Sequence[tuple[int, int]]  # worker, staleness of its update, in the order of updates

    @property
    def is_undisturbed(self) -> bool:
        """Return whether the weights are those of a training without the probe, bit for bit."""
        return all(rank["is_same"] for rank in self.reports)

    @property
    def is_restored(self) -> bool:
        """Return whether PyTorch is after the run what it was before, and was not meanwhile."""
        return all(rank["is_restored"] and rank["was_watched"] for rank in self.reports)

    @property
    def is_complete(self) -> bool:
        """Return whether every rank has every step, and each step's phases sum to it."""
        expected = [(rank, step) for rank in range(len(self.reports)) for step in range(STEPS)]
        steps = self.steps.sort_values(["rank", "step"])
        parts = steps[[f"{phase}_seconds" for phase in PHASES]]
        is_whole = (parts.sum(axis=1) == steps["duration_seconds"]) & (parts >= 0).all(axis=1)
        return list(zip(steps["rank"], steps["step"], strict=True)) == expected and bool(is_whole.all())

    def seen_by(self, rank: int, step: int = 1) -> list[tuple[str, str, int | None]]:
        """Operation, group and bytes of each collective of one step, in their order."""
        own = self.collectives.query(f"rank == {rank} and step == {step}").sort_values("sequence")
        return list(zip(own["operation"], own["group"], own["size_bytes"], strict=True))

    def share_last(self, rank: int, group: str, place: int) -> float:
        """In what share of the steps this rank came last to a group's collective, by more than half of its delay.

        The first step, which also connects, does not count.
        """
        own = self.last.query("group == @group and turn == @place and step > 0 and last_rank == @rank")
        return float((own["late_seconds"] > 0.5 * DELAY_SECONDS).sum()) / (STEPS - 1)

    @property
    def are_matched(self) -> bool:
        """Return whether all ranks of every group came to the same collectives in one order, with the same bytes."""
        by_group: dict[str, set[tuple[tuple[int, str, int | None], ...]]] = {}
        for (group, _), own in self.collectives.groupby(["group", "rank"]):
            seen = zip(own["step"], own["operation"], own["size_bytes"], strict=True)
            by_group.setdefault(str(group), set()).add(tuple(seen))
        return all(len(different) == 1 for different in by_group.values())

    def median_ms(self, rank: int, phase: str) -> float:
        """A phase of this rank's steps."""
        return float(self.steps.query("rank == @rank")[f"{phase}_seconds"].median()) / 1e6


def came_of(folder: Path, printed: str) -> Trained:
    """The record in the folder's `spool`, and what the ranks said."""
    steps, collectives, progress = (rows(folder / "spool", metric_set.name) for metric_set in LOOP_SETS)
    collectives = collectives.sort_values(["rank", "step", "sequence"])
    collectives["place"] = collectives.groupby(["rank", "step", "group"]).cumcount()
    sizes = collectives["size_bytes"]
    collectives["size_bytes"] = sizes.astype(object).where(sizes.notna(), None)
    with Store.open(folder / "home") as store:
        load_spool(store, folder / "spool")
        last = last_to_arrive(store, RUN_ID)
    said = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    reports = [report for report in said if "rank" in report]
    [log] = [report["server_log"] for report in said if "server_log" in report][-1:] or [()]
    return Trained(steps, collectives, progress, last, reports, log)
