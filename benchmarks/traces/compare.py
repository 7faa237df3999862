"""Our work beside the peer's, in processes of their own, and figures of both."""

import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.traces.ranks import SHARED, write_ranks

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers/bin/python"
RANKS = 8
REPEATS = 3  # the middle one counts; the peer's work, which is long, is done once
OTHERS = {"nsys": "nsys/h100_2gpu_1s.sqlite.zst", "xplane": "xplane/mi300_jax_conv.xplane.pb"}
AGREE = 0.01  # of the time of computation; the peer rounds to microseconds


def main() -> None:
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as name:
        folder = Path(name)
        figures["traces"] = write_ranks(folder / "ranks", RANKS)
        figures |= _of_ranks(folder) | _reopened(folder) | _of_others(folder)
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    for figure, value in figures.items():
        print(f"{figure:<40} {value}")
    print(json.dumps(figures))


def _of_ranks(folder: Path) -> dict[str, object]:
    files = sorted((folder / "ranks").glob("*.json"))
    largest = max(path.stat().st_size for path in files) / 1e6
    figures: dict[str, object] = {"ranks": len(files), "raw_megabytes_a_rank": round(largest, 1)}
    of_counts = {count: measured(_some(folder, files, count)) for count in (1, 2)}
    of_counts[len(files)] = _middle(_some(folder, files, len(files)))
    for count, one in of_counts.items():
        figures |= {
            f"peak_megabytes_{count}_ranks": round(one["peak_megabytes"]),
            f"peak_megabytes_{count}_ranks_above_imports": round(one["peak_megabytes"] - one["imported_megabytes"]),
        }
    ours = of_counts[len(files)]
    figures |= {
        "peak_times_largest_file": round(ours["peak_megabytes"] * 2**20 / 1e6 / largest, 2),
        "cpu_seconds": round(ours["cpu_seconds"], 2),
        "raw_megabytes_per_cpu_second": round(sum(path.stat().st_size for path in files) / 1e6 / ours["cpu_seconds"]),
    }
    return figures | _peer(folder / "ranks", ours)


def _some(folder: Path, files: Sequence[Path], count: int) -> list[str]:
    """Return our command for the first ranks."""
    some = folder / f"first{count}"
    some.mkdir()
    for path in files[:count]:
        (some / path.name).symlink_to(path)
    return [sys.executable, "-m", "benchmarks.traces.work", "analyse", str(some)]


def _peer(folder: Path, ours: dict[str, Any]) -> dict[str, object]:
    python = sys.executable if importlib.util.find_spec("hta") else str(PEERS)
    if not Path(python).exists():
        return {"hta": "not measured: make peers installs it"}
    hta = measured([python, "-m", "benchmarks.traces.hta_work", str(folder)])
    for mine, theirs in zip(ours["compute_us"], hta["compute_us"], strict=True):
        assert abs(mine - theirs) <= AGREE * theirs, (mine, theirs)
    return {
        "hta_cpu_seconds": round(hta["cpu_seconds"], 2),
        "times_hta": round(hta["cpu_seconds"] / ours["cpu_seconds"], 1),
        "hta_peak_megabytes_of_its_largest_process": round(hta["peak_megabytes"]),
    }


def _reopened(folder: Path) -> dict[str, object]:
    """Return what a trace takes that was read before."""
    command = [sys.executable, "-m", "benchmarks.traces.work", "reopen", str(folder / "ranks/rank0.json")]
    first = measured([*command, str(folder / "cache")])
    again = _middle([*command, str(folder / "cache")])
    assert again["events"] == first["events"], (first, again)
    figures = {"first_open": first, "reopen": again}
    return {
        f"{name}_{unit}": round(one[unit], 3) for name, one in figures.items() for unit in ("seconds", "cpu_seconds")
    }


def _of_others(folder: Path) -> dict[str, object]:
    """Return raw megabytes a CPU second of other formats, where their recordings are."""
    figures: dict[str, object] = {}
    for name, place in OTHERS.items():
        if (SHARED / place).exists():
            path = _plain(SHARED / place, folder)
            used = _middle([sys.executable, "-m", "benchmarks.traces.work", "read", str(path)])
            megabytes = path.stat().st_size / 1e6
            figures[f"{name}_raw_megabytes"] = round(megabytes, 2)
            figures[f"{name}_raw_megabytes_per_cpu_second"] = round(megabytes / used["cpu_seconds"], 1)
            figures[f"{name}_events_per_cpu_second"] = round(used["events"] / used["cpu_seconds"])
    return figures


def _plain(path: Path, folder: Path) -> Path:
    """Return the file, unpacked if it is packed."""
    if path.suffix != ".zst":
        return path
    plain = folder / path.stem
    with pa.input_stream(str(path), "zstd") as stream:
        plain.write_bytes(stream.read())
    return plain


def _middle(command: Sequence[str]) -> dict[str, Any]:
    """Return what the run of the middle processor time used."""
    return sorted((measured(command) for _ in range(REPEATS)), key=lambda used: used["cpu_seconds"])[REPEATS // 2]


def measured(command: Sequence[str]) -> dict[str, Any]:
    """Return what a process that does the work prints last. Raises: CalledProcessError."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))
