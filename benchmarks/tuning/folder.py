"""Races over a folder of tables, FAMILY/NAME.parquet or .csv: anybody's, named by TABLES.

A table has a column `objective` (above 0, lower is better), optionally `valid`, and one column for each parameter.
Every table is tuned from up to SOURCES others of its family, and from one other family with the same parameters.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.tuning.tables import TABLES, Task, table
from crosswind.data.schema.errors import InvalidInputError

SOURCES = 3
SUFFIXES = frozenset({".parquet", ".csv"})


def tasks_within() -> list[Task]:
    """Every table from the next of its family by name. Raises: InvalidInputError without two tables of one family."""
    tasks = [task for names in _families().values() for task in _from_each_other(names)]
    if not tasks:
        raise InvalidInputError(
            f"TABLES is {TABLES}, expected a folder with two or more tables FAMILY/NAME.parquet or .csv of one family"
        )
    return tasks


def tasks_across() -> list[Task]:
    """The first table of every family from another family whose parameters are called alike; none without such."""
    families = list(_families().values())
    return [
        Task(names[0], tuple(others[:SOURCES]))
        for names in families
        for others in [_called_alike(names, families)]
        if others
    ]


def _families() -> dict[str, list[str]]:
    """Names of tables by family, as FAMILY/NAME."""
    named: dict[str, list[str]] = {}
    for path in sorted(Path(TABLES).glob("*/*")):
        if path.suffix in SUFFIXES:
            named.setdefault(path.parent.name, []).append(f"{path.parent.name}/{path.stem}")
    return named


def _from_each_other(names: Sequence[str]) -> list[Task]:
    circle = [*names, *names]
    others = [circle[place + 1 : place + min(len(names), SOURCES + 1)] for place in range(len(names))]
    return [Task(name, tuple(sources)) for name, sources in zip(names, others, strict=True) if sources]


def _called_alike(names: Sequence[str], families: Sequence[Sequence[str]]) -> Sequence[str]:
    wanted = set(table(names[0]).space.domains)
    return next(
        (others for others in families if others != names and wanted == set(table(others[0]).space.domains)), ()
    )
