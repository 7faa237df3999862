"""Rows of a metric's set that a selection means, in SQL: raw ones by their time, roll-ups by the time they are of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosswind.data.lake.parts import Span
from crosswind.data.lake.retention.rolled_set import NODE, RUN, TIME
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.metrics.selection import Selection
from crosswind.data.store.metrics.stored import Metric
from crosswind.data.store.node_intervals import NodeInterval

SECOND_NS = 1_000_000_000
DEVICE = "device"
WITHIN = """exists (
    select 1 from (select unnest(?) as at_node, unnest(?::bigint[]) as from_ns, unnest(?::bigint[]) as until_ns)
    where at_node = node and {first} >= from_ns and {last} < until_ns
)"""


@dataclass(frozen=True)
class Rows:
    """Rows of a metric's set: SQL that selects them, its parameters, and the time of the files to open."""

    where: str
    parameters: tuple[object, ...]
    span: Span


@dataclass(frozen=True)
class Extent:
    """The first and the last nanosecond that a row is of, in SQL; raw rows are of one."""

    first: str = TIME
    last: str = TIME


def rolled_extent(metric: Metric, seconds: int) -> Extent:
    """Return that of a roll-up. A counter's growth is also of the time since the sample before."""
    name = metric.column.name
    grown = f'({TIME} - ("{name}_seconds" * {SECOND_NS})::bigint)' if metric.is_counter else TIME
    return Extent(grown, f"({TIME} + {seconds * SECOND_NS - 1})")


RAW = Extent()


def rows_of(selection: Selection, metric: Metric, extent: Extent = RAW) -> Rows:
    """Return the rows that a selection means, of a metric of runs or of nodes.

    Where other times on the nodes are somebody else's, no row is of any of these. Raises: InvalidInputError.
    """
    begin_ns, end_ns = selection.span
    span = (begin_ns, end_ns - 1)
    if metric.is_of_runs:
        if not selection.run_ids:
            raise InvalidInputError(f"run None: {metric.name} is of runs: name some, or a job")
        return Rows(f"{TIME} between ? and ? and {_among(RUN, selection.run_ids)}", (*span, *selection.run_ids), span)
    rows = _at_any_time(span) if selection.intervals is None else _on_nodes(selection, span, extent)
    if not selection.devices or DEVICE not in metric.keys:
        return rows
    where = f"{rows.where} and {_among(DEVICE, selection.devices)}"
    return replace(rows, where=where, parameters=(*rows.parameters, *selection.devices))


def _at_any_time(span: Span) -> Rows:
    return Rows(f"{TIME} between ? and ?", span, span)


def _on_nodes(selection: Selection, span: Span, extent: Extent) -> Rows:
    intervals: Sequence[NodeInterval] = selection.intervals or ()
    extent = extent if selection.is_cut else RAW
    nodes = sorted({interval.node for interval in intervals})
    if not nodes:
        return Rows("false", (), span)
    where = f"{TIME} between ? and ? and {_among(NODE, nodes)}"  # what whole groups of rows are passed over by
    if extent == RAW and all((one.begin_ns, one.end_ns - 1) == span for one in intervals):
        return Rows(where, (*span, *nodes), span)
    columns = [
        list(column) for column in zip(*((one.node, one.begin_ns, one.end_ns) for one in intervals), strict=True)
    ]
    return Rows(f"{where} and {WITHIN.format(**vars(extent))}", (*span, *nodes, *columns), span)


def _among(column: str, values: Sequence[str]) -> str:
    return f"{column} in ({', '.join('?' * len(values))})"
