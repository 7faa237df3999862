"""Condensed segments of runs, kept in the lake: of long runs their rows take seconds to read.

Beside each stands what it was made of: the run's record, its ranks, and the files that may hold its rows or samples of
its nodes meanwhile. When anything of that is another, it counts no more. A damaged file counts as none, and where
nothing can be written nothing is kept.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from crosswind.data.files import published
from crosswind.data.lake.damage import DAMAGED
from crosswind.data.lake.holdings import Holdings
from crosswind.data.lake.parts import Span
from crosswind.data.lake.rollups import rollup_place
from crosswind.data.lake.steps_summary import time_of, window_of
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.store import Store
from crosswind.models.explain.rates import RATES
from crosswind.models.explain.segments import COLUMNS, Segments

FORM = 2  # of what is kept; another one makes all anew
MEMORY = 2000  # runs of which it is held in memory, some kilobytes each
SAMPLED = sorted({"process", *(rate.metric_set for rate in RATES)})
BROKEN = (*DAMAGED, KeyError, EOFError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Found:
    """Knowledge of a run: nothing, or its condensed segments, None where it recorded no collectives."""

    is_known: bool
    segments: Segments | None = None


class Kept:
    """Condensed segments kept of these runs in one store as it stands now."""

    def __init__(self, store: Store, runs: Sequence[Run], ranks: Sequence[Rank]) -> None:
        """`ranks` are all of these runs. Raises: MalformedError."""
        lake, within = store.lake, time_of(runs)
        stored = lake.sets() if runs else []
        self._lake = lake
        self._steps = Holdings.of(lake, "step", within, {run.run_id for run in runs})
        self._samples = [Holdings.of(lake, name, within) for name in SAMPLED if name in stored]
        self._ranks: dict[str, list[Rank]] = {}
        for rank in ranks:
            self._ranks.setdefault(rank.run_id, []).append(rank)

    def get(self, run: Run) -> Found:
        """Return what is known of the run and still holds."""
        place = self._place(run)
        try:
            record = _read(place, place.stat().st_mtime_ns)
        except BROKEN:
            return Found(is_known=False)
        if record.made_of != self._made_of(run, record.span):
            return Found(is_known=False)
        return Found(is_known=True, segments=None if record.segments is None else _copy(record.segments))

    def put(self, run: Run, spans: pd.DataFrame, segments: Segments | None) -> None:
        """Keeps what was found of a run that has ended. spans: as `spans_of`, of its ranks."""
        if run.ended_ns is None:
            return
        span = (int(spans["begin_ns"].min()), int(spans["end_ns"].max())) if len(spans) else None
        place = self._place(run)
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with published(place, is_durable=False) as file:
                _write(file, _Told(self._made_of(run, span), span, segments))

    def _place(self, run: Run) -> Path:
        return rollup_place(self._lake, "segments", run.run_id, "npz")

    def _made_of(self, run: Run, span: Span | None) -> str:
        ranks = sorted((rank.rank, rank.node, rank.pid or 0) for rank in self._ranks.get(run.run_id, ()))
        files = self._steps.named(window_of(run).within, run.run_id)
        if span is not None:
            files += [name for sampled in self._samples for name in sampled.named(span)]
        made_of = [FORM, version("crosswind"), COLUMNS, run.nodes, run.started_ns, run.ended_ns, ranks, files]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


@dataclass(frozen=True)
class _Told:
    made_of: str
    span: Span | None
    segments: Segments | None


def _copy(segments: Segments) -> Segments:
    """One that others may write to."""
    return replace(segments, values=segments.values.copy(), of_ranks=segments.of_ranks.copy())


def _write(file: BinaryIO, record: _Told) -> None:
    facts: dict[str, object] = {"made_of": record.made_of, "span": record.span}
    arrays: dict[str, Floats] = {}
    if record.segments is not None:
        run = record.segments
        facts |= {"run_id": run.run_id, "ranks": run.ranks, "clocks": run.clocks, "count": run.count}
        arrays = {"values": run.values, "culprits": run.culprits, "of_ranks": run.of_ranks}
        arrays["work"] = np.array(list(run.work.items()), np.float64).reshape(-1, 2)
    np.savez(file, allow_pickle=False, facts=np.array(json.dumps(facts)), **arrays)


@lru_cache(maxsize=MEMORY)
def _read(path: Path, _: int) -> _Told:
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
        facts = json.loads(str(arrays["facts"]))
        span = None if facts["span"] is None else (facts["span"][0], facts["span"][1])
        if "values" not in arrays:
            return _Told(facts["made_of"], span, None)
        work = {int(rank): float(seconds) for rank, seconds in arrays["work"]}
        values = arrays["values"]
        peers = np.empty((0, values.shape[1]))
        segments = Segments(
            facts["run_id"],
            facts["ranks"],
            values,
            arrays["culprits"],
            peers,
            work,
            arrays["of_ranks"],
            tuple(facts["clocks"]),
            facts["count"],
        )
        return _Told(facts["made_of"], span, segments)
