"""Rows of accuracy as text, and their figures as one JSON object."""

import json
import platform
from collections.abc import Iterable, Mapping
from importlib import import_module
from time import process_time

from benchmarks.accuracy.row import Row


def tell(sources: Iterable[str]) -> None:
    """Measures each source of data, prints its rows as they come, and all figures as the last line."""
    figures: dict[str, object] = {}
    for source in sources:
        before = process_time()
        rows: list[Row] = import_module(f"benchmarks.accuracy.{source}").rows()
        print(f"\n{source}: {process_time() - before:.0f} s of processor time" if rows else f"\n{source}: no data here")
        for row in rows:
            print(text(row))
            figures[row.task] = {**row.figures, "rows": row.rows, "holds": row.holds}
    print(json.dumps(figures | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}))


def text(row: Row) -> str:
    """A task, what was reached, and under it what others reach on the same rows."""
    verdict = "holds" if row.holds else "DOES NOT HOLD"
    head = f"  {row.task} ({row.split}; {row.rows} rows)"
    lines = [head, f"    {'ours':<24} {words(row.figures)}   asked {row.asked}: {verdict}"]
    lines += [f"    {name:<24} {words(figures)}" for name, figures in row.baselines.items()]
    return "\n".join([*lines, *([f"    note: {row.note}"] if row.note else [])])


def words(figures: Mapping[str, float]) -> str:
    """Ratios as percentages, but for losses, which are small, counts and times."""
    return ", ".join(f"{name} {_number(name, value)}" for name, value in figures.items())


def _number(name: str, value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if name.endswith("seconds"):
        return f"{value:.1e}"
    if "pinball" in name or "crps" in name.replace("crps_skill", "") or "loss" in name:
        return f"{value:.4f}"
    return f"{100 * value:.1f} %"
