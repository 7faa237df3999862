"""System metrics that W&B sampled during a run, as rows of the set `series`."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import SERIES, labels_text
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes
from crosswind.ingest.readers.protobuf import Message
from crosswind.ingest.readers.trackers.progress_rows import ROWS_AT_ONCE, SECOND_NS, Value, fault_of
from crosswind.ingest.readers.trackers.wandb_log import records

STATS, TIMESTAMP, ITEM, KEY, VALUE_JSON = 7, 2, 3, 1, 16  # fields of Record, StatsRecord and StatsItem


class Place(NamedTuple):
    """The owner of samples: their node and run."""

    node: str
    wandb_id: str


def samples(stream: Bytes, place: Place, report: Report) -> Iterator[pa.Table]:
    """Yield the samples under W&B's own names, such as `gpu.0.powerWatts`; units are only in these.

    Source: wandb/proto/wandb_internal.proto, StatsRecord. Raises: MalformedError, UnavailableError.
    """
    values = _samples(stream, report)
    labels = labels_text({"wandb_run": place.wandb_id})
    while rows := list(islice(values, ROWS_AT_ONCE)):
        report.read += len(rows)
        columns: dict[str, list[Scalar]] = {
            "ts_ns": [row.ts_ns for row in rows],
            "node": [place.node for _ in rows],
            "device": ["" for _ in rows],
            "name": [row.name for row in rows],
            "labels": [labels for _ in rows],
            "value": [row.value for row in rows],
        }
        yield to_table(SERIES, columns)


def _samples(stream: Bytes, report: Report) -> Iterator[Value]:
    """Yield all samples; other errors of the file were reported with its history."""
    for number, data in records(stream, Report(report.path, report.format)):
        try:
            stats = Message.parsed(data).message(STATS)
        except MalformedError:
            continue
        try:
            yield from _of_moment(stats) if stats else ()
        except MalformedError as error:
            report.skip(number, "", f"record {number}: {error}")


def _of_moment(stats: Message) -> list[Value]:
    moment = stats.message(TIMESTAMP)
    ts_ns = (moment.whole(1) or 0) * SECOND_NS + (moment.whole(2) or 0) if moment else 0
    values = []
    for encoded in stats.repeated(ITEM):
        item = Message.parsed(encoded)
        try:
            number = json.loads(item.text(VALUE_JSON))
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"{item.text(KEY)!r:.80}: no JSON: {error}") from error
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < 1e300:
            continue
        value = Value(ts_ns, 0, item.text(KEY), float(number))
        if fault := fault_of(value):
            raise MalformedError(fault)
        values.append(value)
    return values
