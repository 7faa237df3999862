"""Columns of jobs in a block of Slurm's accounting, each turned into values at once."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS, Clock
from crosswind.ingest.readers.slurm import slurm_values as slurm
from crosswind.ingest.readers.slurm.cells import Cells, Column, Flags, Ints
from crosswind.ingest.readers.slurm.local_times import LENGTH, local_seconds
from crosswind.ingest.readers.slurm.node_counts import node_counts
from crosswind.ingest.readers.slurm.sacct_lines import IDENTIFIERS, STILL_GOING
from crosswind.ingest.readers.slurm.sacct_steps import joules_of
from crosswind.ingest.readers.slurm.text_values import Values, Words, whole_numbers

TEXTS = {"name": "JobName", "user": "User", "account": "Account", "partition": "Partition"}
TIMES = {"submitted_ns": "Submit", "started_ns": "Start", "ended_ns": "End"}
TOLD_OF_STEPS = ("steps", "energy_from", "max_rss_bytes")
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Layout:
    """The places of the columns, and those that are kept as written."""

    columns: tuple[str, ...]

    @property
    def identifier(self) -> str:
        """Return the column that names the job."""
        return next(column for column in IDENTIFIERS if column in self.columns)

    def first(self, *columns: str) -> str:
        """Return the first of these that there is, or the last of them."""
        return next((column for column in columns if column in self.columns), columns[-1])

    @property
    def is_plain(self) -> bool:
        """Return whether no column is repeated, or has our name of a figure of the steps."""
        return len(set(self.columns)) == len(self.columns) and not {*self.columns} & {*TOLD_OF_STEPS}

    @property
    def as_written(self) -> list[str]:
        """Return the columns that are kept as written."""
        understood = {self.identifier, "State", "ExitCode", "NodeList", "ConsumedEnergyRaw"}
        understood |= {self.first("NNodes", "AllocNodes"), self.first("NCPUS", "AllocCPUS")}
        understood |= {self.first("ElapsedRaw", "Elapsed"), *TEXTS.values(), *TIMES.values(), ""}
        return [column for column in self.columns if column not in understood]

    def column(self, cells: Cells, name: str, rows: Ints) -> Column:
        """Return a column in some rows; all empty when there is none."""
        if name in self.columns:
            return cells.column(self.columns.index(name), rows)
        nowhere = np.zeros(len(rows), np.int32)
        return Column(cells.data, nowhere, nowhere)


@dataclass
class Facts:
    """Columns of jobs, and a mask of the jobs to be read line by line."""

    doubtful: Flags
    columns: dict[str, pa.Array] = field(default_factory=dict)

    def put(self, name: str, values: Values) -> pa.Array:
        """Take a column."""
        self.columns[name] = values.values
        self.doubtful |= values.doubtful
        return values.values


def facts_of(cells: Cells, layout: Layout, rows: Ints, clock: Clock) -> Facts:
    """Return the facts of the jobs' own lines, except those kept as written; `local_times` are those without a zone."""
    facts = Facts(np.zeros(len(rows), np.bool_))
    column = partial(layout.column, cells, rows=rows)
    _put_state(facts, Words(column("State").texts()), Words(column("ExitCode").texts()))
    _put_nodes(facts, column("NodeList").texts())
    for fact, names in {"node_count": ("NNodes", "AllocNodes"), "cpu_count": ("NCPUS", "AllocCPUS")}.items():
        name = layout.first(*names)
        facts.put(fact, whole_numbers(column(name), partial(slurm.count, name)))
    _put_times(facts, {fact: column(name) for fact, name in TIMES.items()}, clock)
    name = layout.first("ElapsedRaw", "Elapsed")
    elapsed = facts.put("elapsed_seconds", _elapsed(column(name), name))
    facts.columns["elapsed_seconds"] = elapsed.cast(pa.float64(), safe=False)
    facts.put("joules", joules_of(column("ConsumedEnergyRaw")))
    return facts


def _elapsed(column: Column, name: str) -> Values:
    if name == "ElapsedRaw":
        return whole_numbers(column, partial(slurm.count, name))
    return Words(column.texts()).mapped(slurm.duration_seconds, pa.int64())


def _put_state(facts: Facts, states: Words, codes: Words) -> None:
    facts.put("state", states.mapped(slurm.state_word, pa.string()))
    facts.put("said", states.mapped(lambda text: "" if slurm.state_word(text) == text else text, pa.string()))
    is_going = states.mapped(lambda text: slurm.state_word(text) in STILL_GOING, pa.bool_()).values
    for place, name in enumerate(("exit_code", "signal")):
        numbers = facts.put(name, codes.mapped(partial(_part_of_exit_code, place), pa.int64()))
        facts.columns[name] = pc.if_else(is_going, pa.scalar(None, pa.int64()), numbers)


def _part_of_exit_code(place: int, text: str) -> int | None:
    return slurm.exit_code(text)[place]


def _put_nodes(facts: Facts, texts: pa.Array) -> None:
    """Take the lists in their short form, and their numbers of nodes."""
    counts = facts.put("nodes_named", node_counts(texts))
    facts.columns["nodes"] = pc.if_else(pc.equal(counts, 0), "", texts)


def _put_times(facts: Facts, written: dict[str, Column], clock: Clock) -> None:
    local = np.zeros(len(facts.doubtful), np.int64)
    for name, column in written.items():
        times = facts.put(name, _times(column, TIMES[name], clock))
        is_local = column.lengths == LENGTH
        if is_local.any():
            local += is_local & times.is_valid().to_numpy(zero_copy_only=False)
    facts.columns["local_times"] = pa.array(local)


def _times(column: Column, name: str, clock: Clock) -> Values:
    """Return nanoseconds; doubtful when clocks were changed, which is reported in the order of the lines."""
    times = _seconds_of(column, partial(_seconds, name, Clock(clock.zone)), clock.zone)
    outside = pc.or_(pc.less(times.values, EARLIEST_SECONDS), pc.greater(times.values, LATEST_SECONDS)).fill_null(False)
    seconds = times.values
    if outside.true_count:
        seconds = pc.if_else(outside, pa.scalar(None, pa.int64()), seconds)
    return Values(pc.multiply(seconds, SECOND), times.doubtful | outside.to_numpy(zero_copy_only=False))


def _seconds_of(column: Column, meaning: Callable[[str], int | None], zone: tzinfo) -> Values:
    is_local = column.lengths == LENGTH
    if not is_local.any():
        return whole_numbers(column, meaning, digits=12)
    local = local_seconds(column.some(np.flatnonzero(is_local)).texts(), zone)
    if local.doubtful.all():
        return whole_numbers(column, meaning, digits=12)
    others = whole_numbers(replace(column, ends=np.where(is_local, column.begins, column.ends)), meaning, digits=12)
    others.doubtful[is_local] = local.doubtful
    return Values(pc.replace_with_mask(others.values, pa.array(is_local), local.values), others.doubtful)


def _seconds(column: str, clock: Clock, text: str) -> int | None:
    before = clock.ambiguous
    moment = clock.nanoseconds(column, text)
    if clock.ambiguous > before:
        raise MalformedError(f"{column} {text!r} comes twice or never")
    return None if moment is None else moment // SECOND
