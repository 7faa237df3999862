"""Rows of accuracy as text, and their figures as one JSON object."""

import json
import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from time import process_time

from benchmarks.accuracy.row import Row


def tell(sources: Sequence[str], processes: int = 1) -> None:
    """Measure each source of data, print its rows as they come, and all figures as the last line."""
    figures: dict[str, object] = {}
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for source, (rows, seconds) in zip(sources, pool.map(_measured, sources), strict=True):
            print(f"\n{source}: {seconds:.0f} s of processor time" if rows else f"\n{source}: no data here", flush=True)
            for row in rows:
                print(text(row), flush=True)
                figures[row.task] = {**row.figures, "rows": row.rows, "holds": row.holds}
    print(json.dumps(figures | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}))


def _measured(source: str) -> tuple[list[Row], float]:
    """Return the rows of a source and the processor time that they took."""
    before = process_time()
    rows: list[Row] = import_module(f"benchmarks.accuracy.{source}").rows()
    return rows, process_time() - before


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
