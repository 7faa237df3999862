"""The measurements of earlier checks of a system, as they are stored."""

import math
from collections.abc import Sequence

from crosswind.data.lake.lake import Lake
from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.checks import PREFLIGHT, QUANTITIES

VALUES_EACH = 10  # the newest of one node, device and measure
VALUES_MAX = 100_000
_NEWEST = f"""
select measure, method, hardware, node, coalesce(device, '') as device, coalesce(peer, '') as peer, ts_ns, value
from preflight where system = ? and value > 0 and measure in ({", ".join(f"'{name}'" for name in QUANTITIES)})
qualify row_number() over (partition by measure, method, hardware, node, device, peer order by ts_ns desc)
    <= ?
order by ts_ns desc, measure, node, device, peer limit {VALUES_MAX}
"""  # noqa: S608 - our own names


def earlier_checks(lake: Lake, system: str, *, newest: int = VALUES_EACH) -> tuple[EarlierChecks, ...]:
    """Return the stored values of this system's checks, the `newest` of each place; empty before the first.

    Raises: MalformedError naming a damaged file.
    """
    if PREFLIGHT.name not in lake.sets():
        return ()
    kept: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for *key, at_ns, value in lake.frame(_NEWEST, [system, newest]).itertuples(index=False, name=None):
        if math.isfinite(value):
            kept.setdefault(tuple(map(str, key)), []).append((int(at_ns), float(value)))
    return tuple(_earlier(key, values) for key, values in kept.items())


def _earlier(key: Sequence[str], values: Sequence[tuple[int, float]]) -> EarlierChecks:
    measure, method, hardware, node, device, peer = key
    times, numbers = zip(*values, strict=True)
    return EarlierChecks(measure, method, hardware, node, device, peer, times, numbers)
