"""Scrapes of node_exporter on a node of 64 cores, beside pandas, which takes no notice of names, labels and scrapes."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.readers.format import Format
from crosswind.ingest.readers.telemetry.prometheus import PrometheusReader

RECORDED = Path(__file__).parents[2] / "tests/ingest/recorded/prometheus/node_exporter-1.5.txt"
CORES, BEGAN, EVERY_SECONDS = 64, 1_790_000_000, 15
MODES = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")
CPU, CLOCK = "node_cpu_seconds_total", "node_time_seconds"


def write(path: Path, samples: int) -> None:
    """So many samples; in whole scrapes. Always the same ones."""
    written = number = 0
    recorded = _first_scrape()
    with path.open("w") as file:
        while written < samples:
            for line in _scrape(recorded, number):
                file.write(line)
                written += not line.startswith("#")
            number += 1
        file.write("# EOF\n")


def _first_scrape() -> list[str]:
    """The recorded lines up to where the first family comes again."""
    lines = RECORDED.read_text().splitlines(keepends=True)
    again = [number for number, line in enumerate(lines) if line.startswith(f"# HELP {CPU} ")][1]
    return lines[:again]


def _scrape(recorded: list[str], number: int) -> Iterator[str]:
    for line in recorded:
        if line.startswith(f"{CLOCK} "):
            yield f"{CLOCK} {BEGAN + EVERY_SECONDS * number}.25\n"
        elif not line.startswith(f"{CPU}{{"):
            yield line
        if line.startswith(f"# TYPE {CPU} "):
            for core in range(CORES):
                for place, mode in enumerate(MODES):
                    yield f'{CPU}{{cpu="{core}",mode="{mode}"}} {(1000 * place + core + 14 * number) / 100}\n'


def _pandas(path: Path, folder: Path) -> None:
    frame = pd.read_csv(path, sep=" ", comment="#", names=["series", "value"], engine="c")
    frame.to_parquet(folder / "samples.parquet")


PROMETHEUS = Format("prometheus", "samples", PrometheusReader(), write, 1_000_000, "pandas", _pandas)
