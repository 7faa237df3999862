"""The header line of an LDMS store, in the data file or beside it, and what its file's name says."""

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import is_name
from crosswind.ingest.reader.lines import head_of, plain_head

TIMES = {"Time": 1_000_000, "Time_msec": 1_000}  # microseconds are 1 / so many of the column's unit
PRODUCER = "ProducerName"
KINDS = re.compile("#!ldms-(array-)?kinds")
ROLLED = re.compile(r"(?P<schema>.+?)[.-](?P<epoch>[0-9]{9,11})")
FILE_OF = re.compile(r"(?P<schema>.+)\.(HEADER|KIND)(\.[0-9]{9,11})?")
DATA = re.compile(r'"?[0-9]{9,13}(\.[0-9]{6})?"?, ?"?[0-9]{1,6}"?,')
LONGEST = 64  # characters of a name in the lake


@dataclass(frozen=True)
class Header:
    """The columns of the lines that follow; with user data, a metric is two: `name.userdata` and `name`."""

    names: tuple[str, ...]

    @property
    def time(self) -> str:
        """The column that says when."""
        return next(column for column in TIMES if column in self.names)


def header_of(line: str) -> Header | None:
    """The header that a line is, if it is one: quoted or not, with spaces after its commas or without."""
    if not line.startswith("#"):
        return None
    try:
        names = [name.strip() for name in next(csv.reader([line[1:].strip()], skipinitialspace=True), [])]
    except csv.Error:
        return None
    if PRODUCER not in names or not set(TIMES) & set(names):
        return None
    present = set(names)
    values = ((name, name.removesuffix(".value")) for name in names)
    return Header(_told_apart([value if f"{value}.userdata" in present else name for name, value in values]))


def _told_apart(names: list[str]) -> tuple[str, ...]:
    """The names, of which each stands there once."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        names[sum(seen.values()) - 1] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return tuple(names)


def header_beside(path: Path) -> Header | None:
    """The header of a data file without one: `meminfo` has `meminfo.HEADER`, `meminfo.1699` `meminfo.HEADER.1699`.

    Source: store_csv(7) of LDMS, altheader
    """
    name = path.name.removesuffix(".gz")
    rolled = ROLLED.fullmatch(name)
    beside = f"{rolled['schema']}.HEADER.{rolled['epoch']}" if rolled else f"{name}.HEADER"
    for candidate in (path.with_name(beside), path.with_name(f"{beside}.gz")):
        try:
            header = header_of(plain_head(head_of(candidate)).split("\n", 1)[0].rstrip("\r"))
        except (UnavailableError, ValueError):
            continue
        if header:
            return header
    return None


def is_data(line: str) -> bool:
    """Return whether a line begins with the times that LDMS writes in front of every row."""
    return DATA.match(line) is not None


def schema_of(path: Path) -> str:
    """The schema that a file's name says, without time of rolling and packing."""
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    rolled = ROLLED.fullmatch(name)
    return rolled["schema"] if rolled else name


def safe(name: str, *, room: int = LONGEST) -> str:
    """A name fit for the lake, always the same for the same name."""
    plain = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
    plain = plain if plain[:1].isalpha() else f"x_{plain}".rstrip("_")
    return plain if len(plain) <= room else f"{plain[: room - 9]}_{_digest(name)}"


def safe_names(names: Iterator[str] | list[str], taken: frozenset[str]) -> dict[str, str]:
    """Names fit for the lake by the names in the file; those that would fall together are told apart by digests."""
    renamed = {name: safe(name) for name in names}
    counts = Counter(renamed.values())
    return {
        name: safe_name if counts[safe_name] == 1 and safe_name not in taken else safe(f"{name} {_digest(name)}")
        for name, safe_name in renamed.items()
    }


def checked_set_name(schema: str) -> str:
    """The set of a schema's columns. Raises: MalformedError when nothing of the name is left."""
    name = f"ldms_{safe(schema, room=LONGEST - 8)}"
    if not is_name(name):
        raise MalformedError(f"schema {schema[:80]!r}: expected a file name with letters")
    return name


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]
