"""Headers of LDMS stores, in the data file or next to it, and the schema in the file's name."""

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
    """The columns of the lines that follow; with user data, a metric has two: `name.userdata` and `name`."""

    names: tuple[str, ...]

    @property
    def time(self) -> str:
        """Return the column of times."""
        return next(column for column in TIMES if column in self.names)


def header_of(line: str) -> Header | None:
    """Return the header in a line, if it is one: quoted or not, with spaces after its commas or without."""
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
    return Header(_distinct([value if f"{value}.userdata" in present else name for name, value in values]))


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Return the names, made distinct."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        names[sum(seen.values()) - 1] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return tuple(names)


def separate_header(path: Path) -> Header | None:
    """Return the header of a data file without one: `meminfo.HEADER` for `meminfo`, `meminfo.HEADER.7` for `meminfo.7`.

    Source: store_csv(7) of LDMS, altheader
    """
    name = path.name.removesuffix(".gz")
    rolled = ROLLED.fullmatch(name)
    header_name = f"{rolled['schema']}.HEADER.{rolled['epoch']}" if rolled else f"{name}.HEADER"
    for candidate in (path.with_name(header_name), path.with_name(f"{header_name}.gz")):
        try:
            header = header_of(plain_head(head_of(candidate)).split("\n", 1)[0].rstrip("\r"))
        except (UnavailableError, ValueError):
            continue
        if header:
            return header
    return None


def is_data(line: str) -> bool:
    """Return whether a line begins with the times at the beginning of every row of LDMS."""
    return DATA.match(line) is not None


def schema_of(path: Path) -> str:
    """Return the schema in a file's name, without time of rolling and packing."""
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    rolled = ROLLED.fullmatch(name)
    return rolled["schema"] if rolled else name


def safe(name: str, *, room: int = LONGEST) -> str:
    """Return a name fit for the lake, always the same for the same name."""
    plain = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
    plain = plain if plain[:1].isalpha() else f"x_{plain}".rstrip("_")
    return plain if len(plain) <= room else f"{plain[: room - 9]}_{_digest(name)}"


def safe_names(names: Iterator[str] | list[str], taken: frozenset[str]) -> dict[str, str]:
    """Return names fit for the lake by the names in the file; digests distinguish those that would be equal."""
    renamed = {name: safe(name) for name in names}
    counts = Counter(renamed.values())
    return {
        name: safe_name if counts[safe_name] == 1 and safe_name not in taken else safe(f"{name} {_digest(name)}")
        for name, safe_name in renamed.items()
    }


def checked_set_name(schema: str) -> str:
    """Return the name of the set of a schema's columns. Raises: MalformedError when nothing of the name is left."""
    name = f"ldms_{safe(schema, room=LONGEST - 8)}"
    if not is_name(name):
        raise MalformedError(f"schema {schema[:80]!r}: expected a file name with letters")
    return name


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]
