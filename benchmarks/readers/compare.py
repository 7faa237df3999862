"""Formats beside their peers: `main` measures all, `python -m benchmarks.readers.load` does one load."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.readers.format import Format

LARGER = 4
REPEATS = 3  # the best counts: whoever else uses the machine only ever makes it slower


def compare(formats: Sequence[Format]) -> None:
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as name:
        for file_format in formats:
            figures |= _figures(file_format, Path(name))
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Arrow {pa.__version__}"
    for figure, value in figures.items():
        print(f"{figure:<50} {value}")
    print(json.dumps(figures))


def _figures(file_format: Format, folder: Path) -> dict[str, object]:
    small, large = folder / f"{file_format.name}-small", folder / f"{file_format.name}-large"
    file_format.make(small, file_format.units)
    file_format.make(large, LARGER * file_format.units)
    ours = [_measured(file_format, "ours", small, file_format.units) for _ in range(REPEATS)]
    peers = {
        name: [_measured(file_format, name, small, file_format.units) for _ in range(REPEATS)]
        for name in file_format.peers
    }
    at_large = _measured(file_format, "ours", large, LARGER * file_format.units)
    rate = max(one["rate"] for one in ours)
    figures: dict[str, object] = {
        f"{file_format.unit}_per_cpu_second": round(rate),
        f"{file_format.unit}_per_cpu_second_large": round(at_large["rate"]),
        "file_megabytes": round(small.stat().st_size / 1e6),
        "peak_megabytes": round(min(one["peak_megabytes"] for one in ours)),
        "peak_megabytes_large": round(at_large["peak_megabytes"]),
    }
    for name, measured in peers.items():
        peer_rate = max(one["rate"] for one in measured)
        figures |= {
            f"{file_format.unit}_per_cpu_second_{name}": round(peer_rate),
            f"times_{name}": round(rate / peer_rate, 2),
            f"peak_megabytes_{name}": round(min(one["peak_megabytes"] for one in measured)),
        }
    return {f"{file_format.name}_{figure}": value for figure, value in figures.items()}


def _measured(file_format: Format, who: str, path: Path, units: int) -> dict[str, float]:
    """One load in a process of its own."""
    with tempfile.TemporaryDirectory(dir=path.parent) as home:
        command = [sys.executable, "-m", "benchmarks.readers.load", file_format.name, who, str(path), home]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    usage = json.loads(done.stdout)
    return {"rate": units / usage["cpu_seconds"], "peak_megabytes": usage["peak_megabytes"]}
