"""A training program of `programs/`, run by torchrun under the probe, and what came of it."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import crosswind
from crosswind.data.steps import PHASES
from crosswind.ingest.spool import RowsFrame, read_frames, sealed_segments

PROGRAMS = Path(__file__).parent / "programs"
STEPS, DELAY_NS = 24, 100_000_000  # as in programs/rank.py
LONGEST_SECONDS = 300  # DeepSpeed compiles a part of itself once
THIS_PYTHON = Path(sys.executable)


@dataclass(frozen=True)
class Trained:
    """The record of a training."""

    steps: pd.DataFrame
    collectives: pd.DataFrame  # `place` counts a rank's collectives of one group within a step
    progress: pd.DataFrame
    told: Sequence[dict[str, bool]]
    server_log: Sequence[tuple[int, int]]  # worker, staleness of its update, in the order of updates

    @property
    def is_undisturbed(self) -> bool:
        """Whether the weights are those of a training without the probe, bit for bit."""
        return all(rank["is_same"] for rank in self.told)

    @property
    def is_restored(self) -> bool:
        """Whether PyTorch is after the run what it was before, and was not meanwhile."""
        return all(rank["is_restored"] and rank["was_watched"] for rank in self.told)

    @property
    def is_complete(self) -> bool:
        """Whether every rank has every step, and each step's phases sum to it."""
        expected = [(rank, step) for rank in range(len(self.told)) for step in range(STEPS)]
        found = self.steps.sort_values(["rank", "step"])
        parts = found[[f"{phase}_seconds" for phase in PHASES]]
        is_whole = (parts.sum(axis=1) == found["duration_seconds"]) & (parts >= 0).all(axis=1)
        return list(zip(found["rank"], found["step"], strict=True)) == expected and bool(is_whole.all())

    def seen_by(self, rank: int, step: int = 1) -> list[tuple[str, str, int]]:
        """Operation, group and bytes of each collective of one step, in their order."""
        own = self.collectives.query(f"rank == {rank} and step == {step}").sort_values("sequence")
        return list(zip(own["operation"], own["group"], own["size_bytes"], strict=True))

    def share_last(self, rank: int, group: str, place: int) -> float:
        """In what share of the steps this rank came last to a group's collective, by more than half of its delay.

        The first step, which also connects, does not count.
        """
        own = self.collectives.query("group == @group and place == @place and step > 0")
        arrivals = own.pivot_table(index="step", columns="rank", values="ts_ns")
        behind = arrivals[rank] - arrivals.drop(columns=rank).max(axis=1)
        return float((behind > 0.5 * DELAY_NS).sum()) / (STEPS - 1)

    @property
    def are_matched(self) -> bool:
        """Whether the ranks of every group came to the same collectives in the same order, with the same bytes."""
        by_group: dict[str, set[tuple[tuple[int, str, int], ...]]] = {}
        for (group, _), own in self.collectives.groupby(["group", "rank"]):
            seen = zip(own["step"], own["operation"], own["size_bytes"], strict=True)
            by_group.setdefault(str(group), set()).add(tuple(seen))
        return all(len(different) == 1 for different in by_group.values())

    def median_ms(self, rank: int, phase: str) -> float:
        """A phase of this rank's steps."""
        return float(self.steps.query("rank == @rank")[f"{phase}_seconds"].median()) / 1e6


def trained(spool: Path, program: str, *arguments: str, ranks: int = 2, python: Path = THIS_PYTHON) -> Trained:
    """What came of a program under torchrun."""
    rendezvous = ["--rdzv-backend", "static", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    torchrun = [str(python), "-m", "torch.distributed.run", *rendezvous, "--nproc-per-node", str(ranks)]
    environment = os.environ | {"CROSSWIND_SPOOL": str(spool), "CROSSWIND_RUN_ID": "trained", "OMP_NUM_THREADS": "1"}
    environment |= {
        "PYTHONPATH": str(Path(crosswind.__file__).parents[1]),
        "PATH": f"{python.parent}:{os.environ['PATH']}",  # of ninja, which builds what DeepSpeed needs
        "TORCH_EXTENSIONS_DIR": str(python.parents[1] / "torch_extensions"),
    }
    done = subprocess.run(
        [*torchrun, str(PROGRAMS / program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "crosswind does not" not in done.stderr, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    told = [each for each in said if "rank" in each]
    [log] = [each["server_log"] for each in said if "server_log" in each][-1:] or [()]
    collectives = rows(spool, "collective").sort_values(["rank", "step", "sequence"])
    collectives["place"] = collectives.groupby(["rank", "step", "group"]).cumcount()
    return Trained(rows(spool, "step"), collectives, rows(spool, "progress"), told, log)


def rows(spool: Path, name: str) -> pd.DataFrame:
    """A metric set as the ranks recorded it."""
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    found = [
        pd.DataFrame(each.columns) for each in frames if isinstance(each, RowsFrame) and each.metric_set.name == name
    ]
    return pd.concat([pd.DataFrame(), *found]).reset_index(drop=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
