"""Accounts of Slurm as `sacct_command` asks for them, beside pandas, Arrow and DuckDB, to which they mean nothing."""

import itertools
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.readers.format import Format
from crosswind.ingest.readers.slurm.sacct import COLUMNS, SacctReader

STATES = {"COMPLETED": "0:0", "FAILED": "1:0", "TIMEOUT": "0:0", "CANCELLED by 1234": "0:15", "OUT_OF_MEMORY": "0:125"}
SHARES = (80, 9, 5, 5, 1)
USERS, ACCOUNTS, NODES, BEGAN = 800, 120, 2000, 1_795_200_000
PARTITIONS = ("cpu", "gpu", "long", "debug", "bigmem")
STEPS = ("batch", "extern", "0")


def write(path: Path, lines: int, *, steps: int = 0) -> None:
    """An export of so many lines after the header; each job has so many steps. Always the same one."""
    chance = random.Random(1)
    with path.open("w") as file:
        file.write("|".join(COLUMNS) + "\n")
        file.writelines(itertools.islice(_lines(chance, STEPS[:steps]), lines))


def _lines(chance: random.Random, steps: tuple[str, ...]) -> Iterator[str]:
    submit = BEGAN
    for number in itertools.count(10_000_000):
        submit += chance.randrange(3)
        start, elapsed = submit + chance.randrange(40_000), chance.randrange(1, 86_400)
        nodes, names = _nodes(chance)
        state = chance.choices(tuple(STATES), SHARES)[0]
        user, account = f"user{chance.randrange(USERS):04d}", f"project{chance.randrange(ACCOUNTS):03d}"
        asked = f"cpu={nodes * 64},mem={nodes * 256}G,node={nodes}"
        used = f"{chance.randrange(9)}-{chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}"
        times = f"{start}|{start + elapsed}|{elapsed}"
        yield (
            f"{number}|{number}|{user}|{account}|{chance.choice(PARTITIONS)}|normal|{submit}|{submit}|{times}|"
            f"{state}|{STATES[state]}|{nodes}|{nodes * 64}|{names}|billing={nodes * 64},{asked}|"
            f"billing={nodes * 64},{asked}|{used}||||||||train_{chance.randrange(100)}\n"
        )
        for step in steps:
            rss, joules = chance.randrange(1 << 20, 1 << 37), chance.randrange(10**4, 10**8)
            usage = f"cpu=00:01:00,energy={joules},fs/disk={rss // 7},mem={rss},pages=0,vmem={rss * 2}"
            yield (
                f"{number}.{step}|{number}.{step}||{account}|||{start}|{start}|{times}|COMPLETED|0:0|{nodes}|"
                f"{nodes * 64}|{names}|{asked}||{used}|{rss}|{rss}|{usage}|energy={joules},fs/disk={rss // 9}|"
                f"{rss // 7}|{rss // 9}|{joules}|{step}\n"
            )


def _nodes(chance: random.Random) -> tuple[int, str]:
    """Return how many nodes, and their list: most have one, some a range, few several ranges."""
    shape, first = chance.random(), chance.randrange(1, NODES // 2)
    if shape < 0.6:
        return 1, f"node{first:04d}"
    if shape < 0.95:
        nodes = 1 << chance.randrange(1, 6)
        return nodes, f"node[{first:04d}-{first + nodes - 1:04d}]"
    second = chance.randrange(NODES // 2 + 20, NODES)
    return 13, f"node[{first:04d}-{first + 3:04d},{first + 9:04d},{second:04d}-{second + 7:04d}]"


def _pandas(path: Path, folder: Path) -> None:
    pd.read_csv(path, sep="|").to_parquet(folder / "jobs.parquet")


def _arrow(path: Path, folder: Path) -> None:
    table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="|", quote_char=False))
    pq.write_table(table, folder / "jobs.parquet", compression="zstd")


def _duckdb(path: Path, folder: Path) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        jobs = connection.read_csv(str(path), sep="|", header=True, quotechar="")
        jobs.write_parquet(str(folder / "jobs.parquet"), compression="zstd")


OTHERS = {"arrow": _arrow, "duckdb": _duckdb}
SACCT = Format("sacct", "rows", SacctReader(), write, 200_000, "pandas", _pandas, OTHERS)
SACCT_WITH_STEPS = Format(
    "sacct_with_steps", "rows", SacctReader(), partial(write, steps=3), 200_000, "pandas", _pandas, OTHERS
)
