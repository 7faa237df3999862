"""The last rows of every source as families of samples, every sample once."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet, Scalar
from crosswind.ingest.exposition.freshness import AGENT
from crosswind.ingest.exposition.gpu_names import GPU_NAMES
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.exposition.names import Labels, LabelsOf, Name, Row, of_device
from crosswind.ingest.exposition.node_names import NODE_NAMES
from crosswind.ingest.exposition.own_names import OWN_NAMES
from crosswind.ingest.spool.segment import SweepRows

NAMES: Mapping[str, Mapping[str, Name]] = {**NODE_NAMES, **GPU_NAMES, **OWN_NAMES}
DERIVED = {"collector": {"up", "duration_seconds"}}  # for every source, from its readings
KINDS = {Kind.COUNTER: "counter", Kind.GAUGE: "gauge", Kind.FACT: "gauge"}
KEYS = len(NODE_KEYS)


@dataclass(slots=True)
class Family:
    """Samples of one name: their values by labels, as text."""

    name: str
    kind: str
    help: str
    samples: dict[Labels, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Shown:
    """One column to show: its place in a row, and its names; rows that the first does not fit have the second."""

    place: int
    column: Column
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The columns of a set to show, and the places of the columns that name a row."""

    shown: tuple[_Shown, ...]
    facts: tuple[tuple[int, str], ...]


class Families:
    """Turns rows into families; the plan of a set is kept."""

    def __init__(self) -> None:
        self._plans: dict[str, tuple[MetricSet, _Plan]] = {}

    def of(self, latest: Mapping[str, LatestReading]) -> list[Family]:
        """Return the families of the last readings, sorted by name; of two equal samples the first stays."""
        families: dict[str, Family] = {}
        if agent := latest.get(AGENT):
            _tell_of_sweep(families, agent.rows.ts_ns)
        for source, shown in latest.items():
            _tell_of_source(families, source, shown)
            if shown.reason is None:
                self._tell_rows(families, source, shown.rows)
        return [families[name] for name in sorted(families)]

    def _tell_rows(self, families: dict[str, Family], source: str, rows: SweepRows) -> None:
        plan = self._plan(source, rows.metric_set)
        for row in rows.rows:
            named = _NamedRow(Row(str(row[0]), {name: row[place] for place, name in plan.facts}))
            for shown in plan.shown:
                if row[shown.place] is not None:
                    _add(families, shown, named, row[shown.place])

    def _plan(self, source: str, metric_set: MetricSet) -> _Plan:
        cached = self._plans.get(source)
        if cached is None or cached[0] is not metric_set:
            cached = self._plans[source] = metric_set, _planned(metric_set)
        return cached[1]


class _NamedRow:
    """A row with the labels that were worked out for it."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self._labels: dict[LabelsOf, Labels | None] = {}

    def labels(self, name: Name) -> Labels | None:
        """Return the labels under this name; None if the name does not fit the row."""
        if name.of not in self._labels:
            self._labels[name.of] = name.of(self.row)
        own = self._labels[name.of]
        return tuple(sorted((*own, *name.labels))) if own is not None and name.labels else own


def _tell_of_sweep(families: dict[str, Family], ts_ns: int) -> None:
    family = Family("collector_last_sweep_timestamp_seconds", "gauge", "when the last sweep ended, since 1970")
    family.samples[()] = repr(ts_ns / 10**9)
    families[family.name] = family


def _tell_of_source(families: dict[str, Family], source: str, shown: LatestReading) -> None:
    labels = (("source", source),)
    gauges = (
        ("collector_capability", "1 when the source could be read, else 0", str(int(shown.reason is None))),
        ("collector_scrape_duration_seconds", "time that the last read took", repr(float(shown.duration_seconds))),
    )
    for name, description, value in gauges:
        families.setdefault(name, Family(name, "gauge", description)).samples[labels] = value


def _planned(metric_set: MetricSet) -> _Plan:
    own = list(enumerate(metric_set.columns[KEYS:], 1))
    keys = tuple(column.name for _, column in own if column.kind is Kind.KEY)
    names, of = NAMES.get(metric_set.name, {}), _labels_by(keys)
    left_out = DERIVED.get(metric_set.name, set())
    shown = tuple(
        _Shown(place, column, (*_in_use(names, column), _default(metric_set, column, of)))
        for place, column in own
        if _is_shown(column) and column.name not in left_out
    )
    naming = {Kind.KEY, Kind.FACT}
    return _Plan(shown, tuple((place, column.name) for place, column in own if column.kind in naming))


def _is_shown(column: Column) -> bool:
    """Return whether to show a column: numbers, but for times and epochs."""
    is_stamp = column.kind is Kind.FACT and column.name.endswith("_ns")
    return column.kind in KINDS and column.dtype != "string" and not is_stamp


def _in_use(names: Mapping[str, Name], column: Column) -> tuple[Name, ...]:
    name = names.get(column.name)
    return () if name is None else (name,)


def _default(metric_set: MetricSet, column: Column, of: LabelsOf) -> Name:
    return Name(f"crosswind_{metric_set.name}_{column.name}", of)


def _labels_by(keys: tuple[str, ...]) -> LabelsOf:
    def of_keys(row: Row) -> Labels | None:
        return (("device", row.device), *((key, str(row.facts[key])) for key in keys))

    return of_keys if keys else of_device


def _add(families: dict[str, Family], shown: _Shown, row: _NamedRow, value: Scalar) -> None:
    for name in shown.names:
        labels, family_name = row.labels(name), name.family_of(row.row.device)
        if labels is None or family_name is None:
            continue
        text = _number(value, shown.column, is_raw=name.is_raw)
        if text is not None:
            _family(families, family_name, name, shown.column).samples.setdefault(labels, text)
        return


def _family(families: dict[str, Family], family_name: str, name: Name, column: Column) -> Family:
    family = families.get(family_name)
    if family is None:
        kind = name.kind or KINDS[column.kind]
        family = families[family_name] = Family(family_name, kind, name.help or column.description)
    return family


def _number(value: Scalar, column: Column, *, is_raw: bool) -> str | None:
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if is_raw or column.scale == 1.0:
        return repr(value)
    per_unit = 1 / column.scale
    if column.scale < 1.0 and abs(per_unit - round(per_unit)) < 1e-6 * per_unit:
        return repr(value / round(per_unit))  # 57289 ticks are 572.89 s, not 572.8900000000001
    return repr(value * column.scale)


def without_totals(families: Iterable[Family]) -> Iterator[Family]:
    """Yield the families as OpenMetrics has them: a counter's lacks `_total`, unless another family has that name."""
    families = list(families)
    taken = {family.name for family in families}
    for family in families:
        base = family.name.removesuffix("_total")
        is_counter = family.kind == "counter" and base != family.name and base not in taken
        if is_counter:
            yield replace(family, name=base)
        else:
            yield replace(family, kind="gauge" if family.kind == "gauge" else "unknown")
