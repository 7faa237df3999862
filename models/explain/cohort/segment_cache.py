"""Cache of condensed segments in the lake: of long runs the step rows take seconds to read.

An entry carries a digest of its sources: the run's record, its ranks, and the files that may hold its rows or samples
of its nodes meanwhile. With any other source it is void. A damaged file counts as no entry, and where nothing can be
written there is none.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points, version
from pathlib import Path

import numpy as np
import pandas as pd

from crosswind.data.lake.damage import DAMAGED
from crosswind.data.lake.holdings import Holdings
from crosswind.data.lake.parts import Span
from crosswind.data.lake.publish import hidden_name
from crosswind.data.lake.rollups import rollup_place
from crosswind.data.lake.steps_summary import time_of, window_of
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.store import Store
from crosswind.models.explain.causes import ENTRY_POINT_GROUP
from crosswind.models.explain.cohort.columns import COMPARED_SAMPLES, OWN_COLUMNS, SAMPLED
from crosswind.models.explain.cohort.own_segments import OwnSegments

FORM = 4  # of an entry; another one voids all
MEMORY = 2000  # entries that are also held in memory, some kilobytes each
SAMPLED_SETS = sorted(
    {"process", *(rate.metric_set for sampled in (*SAMPLED, *COMPARED_SAMPLES) for rate in sampled.rates)}
)
PLUG_INS = sorted(
    {f"{point.value} {point.dist.version}" for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist}
)
BROKEN = (*DAMAGED, KeyError, EOFError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Entry:
    """Condensed segments of a run, None where it recorded no collectives; `digest` is of their sources.

    `span` is from the first step of its ranks to the last, None without steps.
    """

    digest: str
    span: Span | None
    segments: OwnSegments | None


class SegmentCache:
    """Entries for some runs of one store at this moment."""

    def __init__(self, store: Store, runs: Sequence[Run], ranks: Sequence[Rank]) -> None:
        """`ranks` are all of these runs. Raises: MalformedError."""
        lake, within = store.lake, time_of(runs)
        stored = lake.sets() if runs else []
        self._lake = lake
        self._steps = Holdings.of(lake, "step", within, {run.run_id for run in runs})
        self._samples = [Holdings.of(lake, name, within) for name in SAMPLED_SETS if name in stored]
        self._ranks: dict[str, list[Rank]] = {}
        for rank in ranks:
            self._ranks.setdefault(rank.run_id, []).append(rank)

    def get(self, run: Run) -> Entry | None:
        """Return the run's entry; None where there is none that still holds."""
        place = self._place(run)
        try:
            entry = _read(place, place.stat().st_mtime_ns)
        except BROKEN:
            return None
        return entry if entry.digest == self._digest(run, entry.span) else None

    def put(self, run: Run, spans: pd.DataFrame, segments: OwnSegments | None) -> None:
        """Write the entry of a run that has ended. spans: as `spans_of`, of its ranks."""
        if run.ended_ns is None:
            return
        span = (int(spans["begin_ns"].min()), int(spans["end_ns"].max())) if len(spans) else None
        place = self._place(run)
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            hidden = hidden_name(self._lake.root, place)
            _write(hidden, Entry(self._digest(run, span), span, segments))
            hidden.replace(place)

    def _place(self, run: Run) -> Path:
        return rollup_place(self._lake, "segments", run.run_id, "npz")

    def _digest(self, run: Run, span: Span | None) -> str:
        ranks = sorted((rank.rank, rank.node, rank.pid or 0) for rank in self._ranks.get(run.run_id, ()))
        files = self._steps.named(window_of(run).within, run.run_id)
        if span is not None:
            files += [name for sampled in self._samples for name in sampled.named(span)]
        code = [FORM, version("crosswind"), PLUG_INS, OWN_COLUMNS]
        sources = [*code, run.nodes, run.started_ns, run.ended_ns, ranks, files]
        return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def _write(path: Path, entry: Entry) -> None:
    facts: dict[str, object] = {"digest": entry.digest, "span": entry.span}
    arrays: dict[str, Floats] = {}
    if entry.segments is not None:
        own = entry.segments
        facts |= {"run_id": own.run_id, "samples": own.samples, "count": own.count}
        arrays = {"values": own.values, "culprits": own.culprits, "of_ranks": own.of_ranks}
        arrays["work"] = np.array(list(own.work.items()), np.float64).reshape(-1, 2)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, facts=np.array(json.dumps(facts)), **arrays)


@lru_cache(maxsize=MEMORY)
def _read(path: Path, _: int) -> Entry:
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
        facts = json.loads(str(arrays["facts"]))
        span = None if facts["span"] is None else (facts["span"][0], facts["span"][1])
        if "values" not in arrays:
            return Entry(facts["digest"], span, None)
        values = arrays["values"]
        segments = OwnSegments(
            facts["run_id"],
            values=values,
            culprits=arrays["culprits"],
            peers=np.empty((0, values.shape[1])),
            of_ranks=arrays["of_ranks"],
            work={int(rank): float(seconds) for rank, seconds in arrays["work"]},
            samples=facts["samples"],
            count=facts["count"],
        )
        return Entry(facts["digest"], span, segments)
