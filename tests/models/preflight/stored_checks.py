"""A store of checks of which it is known which nodes were slow."""

from collections.abc import Mapping

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.store.store import Store

BEGAN = 1_767_225_600_000_000_000  # 2026-01-01, midnight UTC
DAY_NS = 86_400_000_000_000
Value = int | float | str | None


def store_checks(
    store: Store,
    *,
    checks: int,
    nodes: int,
    slow: Mapping[int, str],
    links: bool = False,
    system: str = "lab",
    first: int = 0,
) -> None:
    """A check a day of all nodes `n0` ...: gemm, and links where wanted; `slow` says which node is at half its rate."""
    rows: list[dict[str, Value]] = []
    for number in range(first, first + checks):
        names = [f"n{node}" for node in range(nodes)]
        check: dict[str, Value] = {"ts_ns": BEGAN + number * DAY_NS, "check_id": f"C{number}", "job_id": f"j{number}"}
        check |= {"system": system, "method": "made", "hardware": ""}
        for place, name in enumerate(names):
            half = 0.5 if slow.get(number) == name else 1.0
            value = 1e12 * (1 + 0.002 * ((place + number) % 5)) * half
            rows.append(check | {"node": name, "measure": "gemm", "device": "cpu", "peer": None, "value": value})
        pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]] if links else []
        rows += [
            check | {"node": one, "measure": "bandwidth", "device": None, "peer": other, "value": 2e10}
            for one, other in pairs
        ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    store.lake.append(f"checks-{system}-{first}", to_table(PREFLIGHT, columns))  # type: ignore[arg-type]
