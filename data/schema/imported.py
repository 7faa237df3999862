"""Records of other tools: one long set of any series, and ids for what comes without one."""

import hashlib
import json
from collections.abc import Mapping

from crosswind.data.schema.metric import Column, Kind, MetricSet

SERIES = MetricSet(
    "series",
    "Samples of series that other tools recorded and no set of ours knows.",
    (
        Column("ts_ns", "time of the sample, UTC", Kind.KEY, unit="ns"),
        Column("node", "host name", Kind.KEY, "string"),
        Column("device", "part of the node, empty where the series names none", Kind.KEY, "string"),
        Column("name", "what the other tool calls the series", Kind.KEY, "string"),
        Column("labels", "what else names the series: a JSON object of texts, keys sorted", Kind.KEY, "string"),
        Column("value", "as recorded, in whatever unit", dtype="float64"),
        Column("kind", "counter or gauge, where that is recorded", Kind.FACT, "string"),
        Column("unit", "where that is recorded", Kind.FACT, "string"),
    ),
)


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as the set `series` has them: of equal labels always the same text."""
    return json.dumps(dict(sorted(labels.items())), ensure_ascii=False, separators=(",", ":"))


def imported_id(format: str, *facts: object) -> str:  # noqa: A002  what the file is in, as users say it
    """An id of a run, study or trial that another tool recorded: of the same facts always the same, at most 64 long."""
    digest = hashlib.sha256(json.dumps([str(fact) for fact in facts]).encode()).hexdigest()
    return f"{format}-{digest[:24]}"
