"""Columns of segments: phases, thread times, and the evidence that causes declare."""

from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.evidence.indicators import ComputeLost, InSegments, RunsAlike, Sampled
from crosswind.models.explain.evidence.step_columns import OTHER_THREADS, PHASES, THREAD

# Replicates are drawn column by column: in another order the same seed draws others. Further columns come last.
_FIRST = (
    *("throttled", "stolen", "heat_throttled", "power_throttled"),
    *("memory_stalled", "io_stalled", "cpu_waited", "swapped_in"),
    *(OTHER_THREADS, "out_of_order", "timeouts", "overlimits", "retransmits", "retries"),
    *("link_busy", "pauses", "port_waits", "marks", "backlog"),
    *("software_compute", "software_fabric", "placement_compute", "placement_fabric"),
    *("stalled", "stalled_fabric", "recompiled", "uneven", "clock_lost", "slow_node"),
)


def _place(column: str) -> int:
    return _FIRST.index(column) if column in _FIRST else len(_FIRST)


INDICATORS = tuple(dict.fromkeys(indicator for cause in BY_NAME.values() for indicator in cause.indicators))
SAMPLED = tuple(one for one in INDICATORS if isinstance(one, Sampled))
IN_SEGMENTS = tuple(one for one in INDICATORS if isinstance(one, InSegments))
RUNS_ALIKE = tuple(one for one in INDICATORS if isinstance(one, RunsAlike))
COMPUTE_LOST = tuple(one for one in INDICATORS if isinstance(one, ComputeLost))
COMPARED_SAMPLES = tuple(sampled for lost in COMPUTE_LOST for sampled in lost.samples)

_OF_OTHER_RUNS = {column for one in INDICATORS if isinstance(one, RunsAlike | ComputeLost) for column in one.columns}
_DECLARED = [OTHER_THREADS, *(column for one in INDICATORS for column in one.columns)]
COLUMNS = (*PHASES, *THREAD, *sorted(_DECLARED, key=_place))
OWN_COLUMNS = tuple(name for name in COLUMNS if name not in _OF_OTHER_RUNS)  # which a run gives without the others
SAMPLED_COLUMNS = (*(sampled.column for sampled in SAMPLED), OTHER_THREADS)
# The same in all segments of a run.
OF_RUN = (*SAMPLED_COLUMNS, *(column for one in RUNS_ALIKE for column in one.columns))
# Of all ranks alike, and of none but the rank that arrived last; the others differ from rank to rank.
OF_ALL_RANKS = ("fabric", OTHER_THREADS, *(column for one in INDICATORS if one.of_all_ranks for column in one.columns))
OF_LAST_RANK = tuple(column for one in INDICATORS if not one.of_all_ranks for column in one.columns)
# By cause its evidence sampled on links.
LINK_EVIDENCE = {
    name: links
    for name, cause in BY_NAME.items()
    if (links := tuple(one for one in cause.indicators if isinstance(one, Sampled) and one.on_links))
}
