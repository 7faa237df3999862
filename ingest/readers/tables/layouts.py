"""Tables that need no map, as their header shows what they are: a public one is one map here, and its test."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from crosswind.ingest.readers.tables.table_map import TableMap

TIMES = ("seconds", "step_seconds")


@dataclass(frozen=True)
class Layout:
    """A known kind of table: the columns that show it, and its map."""

    name: str
    columns: tuple[str, ...]
    words: Mapping[object, object]

    def table_map(self, names: Collection[str]) -> TableMap:
        """Return the map, without columns that this table does not have."""
        there = {word: value for word, value in self.words.items() if _is_there(value, names)}
        return TableMap.of(there, f"layout {self.name}")


# Source: readme.md of ByteDance-Seed/StragglerAnalysis.
STRAGGLER_ANALYSIS = Layout(
    "StragglerAnalysis",
    ("rank", "step", "optype", "start_ts", "duration", "seq_id"),
    {
        "table": "operations",
        "rank": "rank",
        "step": "step",
        "operation": "optype",
        "number": "seq_id",
        "start": {"column": "start_ts", "unit": "s"},
        "seconds": {"column": "duration", "unit": "s"},
        "stage": {"column": "stage"},
        "replica": {"column": "dp_rank"},
        "micro_batch": {"column": "mb_id"},
        "chunk": {"column": "mc"},
    },
)
# Source: ml-energy/zeus, trace/summary_power_*.csv: one epoch of a job under a power limit.
ZEUS = Layout(
    "Zeus power summary",
    ("dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power"),
    {
        "table": "runs",
        "workload": ["dataset", "network"],
        "ranks": {"value": 1},
        "nodes": {"value": 1},
        "seconds": {"column": "time_per_epoch", "unit": "s"},
        "power": {"column": "average_power", "unit": "W"},
        "configuration": ["batch_size", "optimizer", "power_limit"],
    },
)
# Source: VIA-Research/vTrain, measured iterations of language models on one node.
VTRAIN = Layout(
    "vTrain ground truth",
    ("# GPUs", "global batch", "micro batch", "hidden size", "# layers", "iteration time (ms)"),
    {
        "table": "runs",
        "workload": {"value": "language model"},
        "ranks": "# GPUs",
        "nodes": {"value": 1},
        "step_seconds": {"column": "iteration time (ms)", "unit": "ms"},
        "configuration": {
            "global_batch": "global batch",
            "micro_batch": "micro batch",
            "hidden": "hidden size",
            "heads": "attention heads",
            "layers": "# layers",
            "sequence": "sequence length",
            "tensor_parallel": "tensor parallelism",
            "data_parallel": "data parallelism",
            "pipeline_parallel": "pipeline parallelism",
        },
    },
)
LAYOUTS = (STRAGGLER_ANALYSIS, ZEUS, VTRAIN)
OWN_RUNS = (
    *("workload", "system", "run", "ranks", "nodes", "ranks_per_node", "seconds", "step_seconds", "steps"),
    *("start", "end", "state", "job"),
)
OWN_STEPS = ("workload", "system", "run", "rank", "step", "start", "seconds", "input", "compute", "comm", "checkpoint")


def layout_of(names: Collection[str]) -> TableMap | None:
    """Return the map of a table with these columns, if they show one: a known layout, or this program's own words."""
    for layout in LAYOUTS:
        if set(layout.columns) <= set(names):
            return layout.table_map(names)
    own = {str(name) for name in names}
    if {"rank", "step", "seconds"} <= own:
        words: dict[object, object] = {name: name for name in OWN_STEPS if name in own}
        return TableMap.of({"table": "steps", **words}, "layout of steps")
    if "workload" in own and own & set(TIMES):
        return _of_own_runs(own)
    return None


def _of_own_runs(own: Collection[str]) -> TableMap:
    """Return the map of runs in our own words; columns that are none of them are parameters."""
    words: dict[object, object] = {name: name for name in OWN_RUNS if name in own}
    if "energy_joules" in own:
        words["energy"] = "energy_joules"
    tags = {name.removeprefix("tag."): name for name in sorted(own) if name.startswith("tag.")}
    facts = {name.removeprefix("fact."): name for name in sorted(own) if name.startswith("fact.")}
    others = sorted(set(own) - set(OWN_RUNS) - {"energy_joules", *tags.values(), *facts.values()})
    if tags:
        words["tags"] = tags
    if facts:
        words["facts"] = facts
    if others:
        words["configuration"] = {name.removeprefix("config."): name for name in others}
    return TableMap.of({"table": "runs", **words}, "layout of runs")


def _is_there(value: object, names: Collection[str]) -> bool:
    """Return whether a table has the column; those that the layout is known by, and values, are always there."""
    column = value.get("column") if isinstance(value, dict) else None
    return column is None or column in names
