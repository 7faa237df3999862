"""Accuracy in naming the disturbed rank while the run goes on, on the lab's samples and on a published trace.

Split: the tag `split` of the samples; the detector's constants were chosen on `train`, and `test` was looked at last.
A run's rank is the one that lost it the most seconds; the fabric (None) counts as no rank. Baselines: the rank of the
longest mean step, which barriers make equal, and the rank of the largest mean time without waiting, which always names
one. The tags tell the truth and choose rows; nothing else reads them.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crosswind.client.local import Local
from crosswind.data.lake.steps_summary import rank_steps
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.stragglers import RunStragglers
from crosswind.data.schema.run import Run
from crosswind.data.store.features import WARM_UP_STEPS, all_runs
from crosswind.data.store.store import Store

INJECTED = re.compile(r"([a-z_]+):(\d+):")
OF_A_RANK = ("slow_rank", "slow_input", "late_checkpoint", "cpu_hog", "pause", "cpu_quota")
SPLITS = ("test",)


@dataclass(frozen=True)
class Naming:
    """Of one kind of fault: how many runs, whom each way named the disturbed rank of, and nobody at all."""

    runs: int
    right: int
    nobody: int
    slowest_step: int
    largest_local: int
    noticed_seconds: float  # median


def lab_naming(splits: tuple[str, ...] = SPLITS) -> Mapping[str, Naming]:
    """By kind of fault; `none` are the undisturbed runs, of which `nobody` is right."""
    rows: dict[str, list[tuple[bool, bool, bool, bool, float]]] = {}
    with TemporaryDirectory() as folder, Local(Store.open(Path(folder) / "store")) as client:
        load_lab_samples(client.store)
        for run in all_runs(client.store):
            if run.tags.get("split") in splits:
                kinds = INJECTED.findall(run.tags["injected"])
                truth = {int(rank) for _, rank in kinds}
                kind = "+".join(sorted(name for name, _ in kinds)) or "none"
                rows.setdefault(kind, []).append(_one(client, run, truth))
    return {kind: _naming(verdicts) for kind, verdicts in sorted(rows.items())}


def _one(client: Local, run: Run, truth: set[int]) -> tuple[bool, bool, bool, bool, float]:
    rank, noticed = _most_lost(client.run_stragglers(run.run_id))
    rows = rank_steps(client.store.lake, run.run_id)
    rows = rows[rows["step"] >= WARM_UP_STEPS]
    local = (rows["duration_seconds"] - rows["comm_seconds"]).groupby(rows["rank"]).mean()
    slowest = rows.groupby("rank")["duration_seconds"].mean()
    return rank in truth, rank is None, int(slowest.idxmax()) in truth, int(local.idxmax()) in truth, noticed


def _most_lost(stragglers: RunStragglers) -> tuple[int | None, float]:
    """The rank whose lags cost the most seconds, None without any, and after how long that was noticed."""
    lost: Counter[int] = Counter()
    noticed: dict[int, float] = {}
    for episode in stragglers.episodes:
        if episode.rank is not None:
            last = episode.last_step if episode.last_step is not None else stragglers.newest_step or episode.first_step
            lost[episode.rank] += episode.lag_seconds * (last - episode.first_step + 1)
            noticed.setdefault(episode.rank, episode.noticed_after_seconds)
    rank = max(lost, key=lambda one: lost[one]) if lost else None
    return rank, noticed.get(rank, np.nan) if rank is not None else np.nan


def _naming(verdicts: list[tuple[bool, bool, bool, bool, float]]) -> Naming:
    right, nobody, slowest, local = (sum(verdict[place] for verdict in verdicts) for place in range(4))
    noticed = [verdict[4] for verdict in verdicts if np.isfinite(verdict[4])]
    return Naming(len(verdicts), right, nobody, slowest, local, float(np.median(noticed)) if noticed else np.nan)
