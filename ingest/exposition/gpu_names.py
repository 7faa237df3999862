"""The names of GPUs, the same for every vendor: `gpu_...`, with the GPU's UUID and its place."""

from collections.abc import Mapping

from crosswind.data.schema.metric import Kind, MetricSet
from crosswind.ingest.collectors.amd_gpu import AMD_GPU
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.exposition.names import Labels, Name, Row

DIRECTIONS = {"transmit": "tx", "receive": "rx"}
MEMORY_ERRORS = {"ecc_corrected": "corrected", "ecc_uncorrected": "uncorrected", "ecc_deferred": "deferred"}


def _gpu(row: Row) -> Labels | None:
    index, part = row.facts.get("index"), row.facts.get("mig_instance")
    labels: Labels = (("gpu", str(index)),) if isinstance(index, int) else ()
    return (*labels, *((("mig", str(part)),) if part else ()), ("uuid", row.device))


def _name(column: str) -> Name:
    stem = column.removesuffix("_total")
    if column.endswith("_clock_hertz"):
        return Name("gpu_clock_hertz", _gpu, (("clock", column.removesuffix("_clock_hertz")),), help="clocks")
    if column.startswith("throttle_"):
        unit = "seconds" if stem.endswith("_seconds") else "cycles"
        reason = stem.removeprefix("throttle_").removesuffix("_seconds")
        return Name(f"gpu_throttle_{unit}_total", _gpu, (("reason", reason),), help="held down, by reason")
    if column.startswith("ecc_"):
        volatile = "false" if stem.endswith("_lifetime") else "true"
        kind = MEMORY_ERRORS[stem.removesuffix("_lifetime")]
        return Name("gpu_ecc_errors_total", _gpu, (("type", kind), ("volatile", volatile)), help="memory errors")
    if column.startswith("remapped_rows_"):
        labels = (("type", stem.removeprefix("remapped_rows_")),)
        return Name("gpu_remapped_rows_total", _gpu, labels, help="rows of memory that were replaced")
    for long, short in DIRECTIONS.items():
        column = column.replace(f"_{long}_", f"_{short}_")
    return Name(f"gpu_{column}", _gpu)


def _names(metric_set: MetricSet) -> dict[str, Name]:
    shown = (column.name for column in metric_set.columns if column.kind in {Kind.COUNTER, Kind.GAUGE})
    return {column: _name(column) for column in shown}


GPU_NAMES: Mapping[str, Mapping[str, Name]] = {
    "gpu": _names(GPU),
    "amd_gpu": _names(AMD_GPU),
    "gpu_process": {
        "memory_used_bytes": Name(
            "gpu_process_memory_bytes", lambda row: (("pid", str(row.facts.get("pid"))), ("uuid", row.device))
        )
    },
}
