"""Sources of a metric set's samples: files of raw rows, and roll-ups where these answer, both as SQL reads them."""

from collections.abc import Iterator
from dataclasses import dataclass

from crosswind.data.lake.lake import Lake, converted
from crosswind.data.lake.retention.reading import Coarse, Reading, reading
from crosswind.data.lake.retention.rolled_set import TIME, unpacked
from crosswind.data.schema.keeping import rollup_name
from crosswind.data.schema.metric import Column
from crosswind.data.store.metrics.aggregate import Samples
from crosswind.data.store.metrics.rows import Rows, rolled_extent, rows_of
from crosswind.data.store.metrics.selection import Selection
from crosswind.data.store.metrics.stored import Metric

LOOK_BACK_NS = (
    300_000_000_000  # before the time that is asked for: the growth of its first samples needs the ones before
)
NAMES = {"count": "n", "sum": "total", "min": "least", "max": "most"}  # of the parts of a roll-up
ONE_EACH = "1::bigint as n, value as total, value as least, value as most"


@dataclass(frozen=True)
class Source:
    """The samples of a set that a selection means; `reading` is of sets of nodes."""

    lake: Lake
    selection: Selection
    reading: Reading | None

    @property
    def resolution(self) -> int:
        """The seconds of the coarsest roll-up that is read; 0 where none is."""
        return max(self.reading.days, default=0) if self.reading else 0

    def files(self, metric: Metric) -> tuple[str, Rows]:
        """Return the files of raw samples in SQL, and which of their rows are meant."""
        rows = rows_of(self.selection, metric)
        if self.reading is not None:
            return self.lake.files_among(metric.set_name, self.reading.rows), rows
        parts = self.lake.parts(metric.set_name, rows.span, self.selection.run_ids)
        return self.lake.source(metric.set_name, parts or self.lake.parts(metric.set_name)[-1:]), rows

    def rolled(self, metric: Metric, selection: Selection) -> Iterator[tuple[str, Rows]]:
        """Yield the files of roll-ups of each resolution in SQL, and which of their rows a selection means."""
        for seconds, files in self.reading.rolled.items() if self.reading else ():
            rows = rows_of(selection, metric, rolled_extent(metric, seconds))
            yield self.lake.files_among(rollup_name(metric.set_name, seconds), files), rows

    def times(self, metric: Metric) -> Samples:
        """Return keys and times of all samples, raw or rolled up."""
        files = [self.files(metric), *self.rolled(metric, self.selection)]
        keys = _keys(metric)
        selects = [f"select {keys}{TIME} from {source} where {rows.where}" for source, rows in files]  # noqa: S608
        return Samples(" union all ".join(selects), tuple(one for _, rows in files for one in rows.parameters))

    def gauge(self, metric: Metric) -> Samples:
        """Return the samples of a gauge in base units."""
        source, rows = self.files(metric)
        value = converted(metric.column).removesuffix(f' as "{metric.column.name}"')
        raw = f"select {_keys(metric)}{TIME}, {value}::double as value from {source} where {rows.where}"  # noqa: S608
        if not self.resolution:
            return Samples(f"({raw})", rows.parameters)
        added_up = self.added_up(metric, self.selection)
        one_each = f"select *, {ONE_EACH} from ({raw}) where value is not null"  # noqa: S608 - identifiers
        return Samples(
            f"({one_each} union all {added_up.sql})", (*rows.parameters, *added_up.parameters), is_rolled=True
        )

    def added_up(self, metric: Metric, selection: Selection) -> Samples:
        """Return what samples add up to in roll-ups; of counters also growth and seconds."""
        files = list(self.rolled(metric, selection))
        name = metric.column.name
        further = f'"{name}_growth" as growth, "{name}_seconds" as seconds, ' if metric.is_counter else ""
        columns = f"{_keys(metric)}{TIME}, {further}null::double as value, {_added_up(metric.column)}"
        some = f'"{name}_count" > 0'
        selects = [f"select {columns} from {source} where {rows.where} and {some}" for source, rows in files]  # noqa: S608
        return Samples(" union all ".join(selects), tuple(one for _, rows in files for one in rows.parameters))


def source_of(lake: Lake, metric: Metric, selection: Selection, coarse_seconds: int | None) -> Source:
    """Return the source of a metric's set; with `coarse_seconds` roll-ups may also stand for days with raw rows."""
    if metric.is_of_runs:
        return Source(lake, selection, None)
    begin_ns, end_ns = selection.span
    coarse = None if coarse_seconds is None or selection.is_cut else Coarse(coarse_seconds, selection.span)
    return Source(
        lake,
        selection,
        reading(lake, metric.set_name, (begin_ns, end_ns - 1), look_back_ns=LOOK_BACK_NS, coarse=coarse),
    )


def _added_up(column: Column) -> str:
    parts = unpacked(column)
    return ", ".join(f"{parts[f'{column.name}_{kind}']} as {name}" for kind, name in NAMES.items())


def _keys(metric: Metric) -> str:
    return "".join(f'"{key}", ' for key in metric.keys)
