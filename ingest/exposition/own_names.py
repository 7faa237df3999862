"""Names of the agent's metrics of itself, and of everything without an established name."""

from collections.abc import Mapping

from crosswind.ingest.exposition.names import Labels, Name, Row, of_node


def _source(row: Row) -> Labels | None:
    return (("source", row.device),)


OWN_NAMES: Mapping[str, Mapping[str, Name]] = {
    "agent": {
        "cpu_seconds_total": Name("collector_cpu_seconds_total", of_node),
        "resident_bytes": Name("collector_resident_memory_bytes", of_node),
        "lateness_seconds": Name("collector_lateness_seconds", of_node),
        "sweep_duration_seconds": Name("collector_sweep_duration_seconds", of_node),
        "missed_ticks_total": Name("collector_missed_ticks_total", of_node),
        "dropped_rows_total": Name("collector_samples_dropped_total", of_node, (("stage", "rows"),)),
        "dropped_segments_total": Name("collector_segments_dropped_total", of_node),
        "clock_offset_seconds": Name("clock_offset_seconds", of_node),
    },
    "collector": {
        "failures_total": Name("collector_read_errors_total", _source),
        "samples": Name("collector_samples", _source),
    },
}
