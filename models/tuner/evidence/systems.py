"""Descriptions of systems: their hardware and its speed, from the checks before jobs."""

import math
from collections.abc import Mapping

from crosswind.data.store.store import Store

# Of each measure at its largest size the median over nodes; texts are the commonest.
_MEASURED = """
select system, measure, median(value) as value, mode(hardware) as hardware from preflight
where system is not null and value is not null and (size_bytes is null or (system, measure, size_bytes) in
    (select (system, measure, max(size_bytes)) from preflight where size_bytes is not null group by system, measure))
group by system, measure order by system, measure
"""


def descriptors_of(store: Store) -> dict[str, Mapping[str, float | str]]:
    """Return by system `check.<measure>`, in the measure's unit, and `hardware.<measure>`, the model.

    Systems without a check are left out. Raises: MalformedError.
    """
    descriptors: dict[str, dict[str, float | str]] = {}
    if not store.has_rows_of("preflight"):
        return {}
    rows = store.lake.frame(_MEASURED)
    values = rows["value"].to_numpy(dtype=float).tolist()
    for system, measure, value, hardware in zip(rows["system"], rows["measure"], values, rows["hardware"], strict=True):
        measured = descriptors.setdefault(str(system), {})
        if math.isfinite(value):
            measured[f"check.{measure}"] = value
        if isinstance(hardware, str):
            measured[f"hardware.{measure}"] = hardware
    return dict(descriptors)
