"""Traces as rows of the lake, and back: codes become texts, which rows of other traces share."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.metric import MetricSet
from crosswind.data.schema.run import Run
from crosswind.data.schema.traced import TRACE_EVENT, TRACED_RANK
from crosswind.data.traces.trace import NONE, Events, Group, Integers, Kind, Place, RankTrace

KINDS = [kind.name.lower() for kind in Kind]
NUMBERS = {"correlation": "correlation", "operator": "operator", "sequence": "sequence", "size_bytes": "bytes"}
OF_RANK = ("world_size", "node", "run", "resolution_ns", "source", "format")  # the same in each trace of a rank
Facts: TypeAlias = dict[str, Any]
STATED = ("world_size", "node", "run", "resolution_ns", "counters", "notes")  # of a rank, beside its process groups


def rows_of(trace: RankTrace, run: Run, rank: int) -> Iterator[pa.Table]:
    """Yield the rows of a trace as those of a rank of a run: one of the rank, then those of its events."""
    events = trace.events
    if not len(events):
        return
    times = _times(events.begin_ns, run)
    first, last = int(events.begin_ns[0]), int(events.begin_ns[-1])
    facts: Facts = {name: getattr(trace, name) for name in STATED} | {"groups": trace.groups}
    columns: Mapping[str, object] = {
        "ts_ns": times[:1],
        "run_id": [run.run_id],
        "rank": [rank],
        "first_ns": [first],
        "last_ns": [last],
        "events": [len(events)],
        "source": [trace.source],
        "format": [trace.format],
        "facts": [msgspec.json.encode(facts).decode()],
    }
    yield _table(TRACED_RANK, columns)
    yield _table(TRACE_EVENT, _event_columns(trace, times, run.run_id, rank))


def _times(begins: Integers, run: Run) -> Integers:
    """Return begins within the run's time, where its rows are looked for; clocks since a boot are moved there."""
    latest = time.time_ns() if run.ended_ns is None else run.ended_ns
    earliest = min(run.started_ns or 0, latest)
    return np.clip(begins, max(0, earliest), max(0, latest))


def _event_columns(trace: RankTrace, times: Integers, run_id: str, rank: int) -> dict[str, object]:
    events, count = trace.events, len(trace.events)
    numbers = {name: _or_null(getattr(events, column)) for name, column in NUMBERS.items()}
    places = trace.places or (Place(""),)
    return {
        "ts_ns": times,
        "run_id": pa.repeat(run_id, count),
        "rank": np.full(count, rank),
        "begin_ns": events.begin_ns,
        "number": np.arange(count),
        "duration_seconds": events.duration_ns,
        "kind": _texts(events.kind, KINDS),
        "name": _texts(events.name, trace.names),
        "place": _texts(events.place, [place.label for place in places]),
        "device": _or_null(np.array([place.device for place in places], np.int64)[events.place]),
        "thread": _or_null(np.array([place.thread for place in places], np.int64)[events.place]),
        **numbers,
        "communicator": _texts(events.group, [group.name for group in trace.groups]),
        "flops": pa.array(events.flops, from_pandas=True),
    }


def _or_null(numbers: Integers) -> pa.Array:
    return pa.array(numbers, pa.int64(), mask=numbers == NONE)


def _texts(codes: NDArray[Any], texts: Sequence[str]) -> pa.Array:
    """Return the texts that codes mean; null for NONE."""
    wide = codes.astype(np.int32)
    indices = pa.array(wide, pa.int32(), mask=wide == NONE)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string())).cast(pa.string())


def _table(metric_set: MetricSet, columns: Mapping[str, object]) -> pa.Table:
    schema = arrow_schema(metric_set)
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def facts_by_rank(ranks: pa.Table) -> dict[int, list[Facts]]:
    """Return what stored rows of ranks state, in the order of the ranks; one has several if several traces are its."""
    facts: dict[int, list[Facts]] = {}
    for row in ranks.sort_by([("rank", "ascending"), ("first_ns", "ascending")]).to_pylist():
        facts.setdefault(row["rank"], []).append({**row, **msgspec.json.decode(row["facts"])})
    return facts


def trace_in(rank: int, parts: Sequence[Facts], rows: pa.Table) -> RankTrace:
    """Return the trace of a rank's stored rows; several of it are joined. Times of events are exact."""
    rows = rows.sort_by([("begin_ns", "ascending"), ("number", "ascending")])
    groups = {group["name"]: msgspec.convert(group, Group) for part in parts for group in part["groups"]}
    names, name = _codes(rows["name"])
    places, place = _places(rows)
    communicators, group = _codes(rows["communicator"])
    columns = {name: _number(rows[name]) for name in NUMBERS}
    counts = {key: sum(part["counters"].get(key, np.nan) for part in parts) for key in parts[0]["counters"]}
    return RankTrace(
        Events(
            _number(rows["begin_ns"]),
            _number(rows["duration_seconds"]),
            _kinds(rows["kind"]),
            name,
            place,
            columns["correlation"],
            columns["operator"],
            group,
            columns["sequence"],
            columns["size_bytes"],
            rows["flops"].to_numpy(),
        ),
        names,
        places,
        tuple(groups.get(one, Group(one)) for one in communicators),
        rank=rank,
        counters=counts,
        notes=(*dict.fromkeys(note for part in parts for note in part["notes"]), *_joined(rank, parts)),
        **{name: parts[0][name] for name in OF_RANK},
    )


def _joined(rank: int, parts: Sequence[Facts]) -> list[str]:
    """Return a note where a rank has several traces."""
    names = ", ".join(part["source"].rpartition("/")[2] for part in parts)
    return [f"rank {rank}: {len(parts)} of its traces are joined, {names}"] if len(parts) > 1 else []


def _number(column: pa.ChunkedArray) -> Integers:
    numbers: Integers = pc.fill_null(column, NONE).to_numpy().astype(np.int64)
    return numbers


def _codes(column: pa.ChunkedArray) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    encoded = column.combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices, NONE).to_numpy(zero_copy_only=False).astype(np.int32)
    return tuple(encoded.dictionary.to_pylist()), codes


def _kinds(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    texts, codes = _codes(column)
    return np.array([KINDS.index(text) for text in texts] or [0], np.uint8)[codes]


def _places(rows: pa.Table) -> tuple[tuple[Place, ...], NDArray[np.int32]]:
    """Return the streams and threads, and of each event which: those of one label differ by device and number."""
    labels, label = _codes(rows["place"])
    keys = np.stack([label, _number(rows["device"]), _number(rows["thread"])], axis=1).reshape(-1, 3)
    different, code = np.unique(keys, axis=0, return_inverse=True)
    places = tuple(Place(labels[one], device, thread) for one, device, thread in different.tolist())
    return places, code.ravel().astype(np.int32)
