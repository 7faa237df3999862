"""A store of LDMS's meminfo, 64 nodes a second, beside pandas, which takes no notice of what it means."""

import random
from pathlib import Path

import pandas as pd

from benchmarks.readers.format import Format
from crosswind.ingest.readers.telemetry.ldms import LdmsReader

RECORDED = Path(__file__).parents[2] / "tests" / "ingest" / "recorded" / "ldms" / "meminfo.1763762400"
NODES, BEGAN, IDENTITY = 64, 1_763_762_400, 6  # columns in front of the metrics


def write(path: Path, values: int) -> None:
    """Rows of so many values in all, one at least. Always the same ones."""
    header, row = RECORDED.read_text().splitlines()[:2]
    sizes = [int(cell) for cell in row.split(",")[IDENTITY:]]
    chance = random.Random(1)
    with path.open("w") as file:
        file.write(f"{header}\n")
        for number in range(max(1, values // (len(sizes) + IDENTITY))):
            second, node = divmod(number, NODES)
            micros = 1000 + node * 37
            cells = ",".join([str(size + 4 * chance.randrange(1000)) if size else "0" for size in sizes])
            file.write(f"{BEGAN + second}.{micros:06d},{micros},nid{node:05d},{node},4711,0,{cells}\n")


def _pandas(path: Path, folder: Path) -> None:
    pd.read_csv(path).to_parquet(folder / "meminfo.parquet")


LDMS = Format("ldms", "values", LdmsReader(), write, 6_000_000, "pandas", _pandas)
