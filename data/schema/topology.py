"""Switches that nodes hang on: Slurm's topology.conf, or what `scontrol show topology` prints."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from crosswind.data.schema.errors import MalformedError, NotFoundError
from crosswind.data.schema.hostlist import expand

BYTES_MAX = 64 * 2**20
PAIR = re.compile(r"([A-Za-z]+)=(\S*)")
LEAF = "0"
FILE = "topology.conf"  # below the store's folder


def switches_of(path: Path) -> dict[str, str]:
    """By node the leaf switch that it hangs on; switches of switches are left out.

    Raises: NotFoundError; MalformedError for a file that names no node, or one node twice.
    Source: topology.conf(5), scontrol(1).
    """
    switches: dict[str, str] = {}
    for number, facts in _lines(_text(path)):
        if "switchname" not in facts or "switches" in facts or facts.get("level", LEAF) != LEAF:
            continue
        for node in _nodes(path, number, facts.get("nodes", "")):
            if switches.setdefault(node, facts["switchname"]) != facts["switchname"]:
                here = f"{switches[node]!r:.80} and {facts['switchname']!r:.80}"
                raise MalformedError(f"{path}, line {number}: node {node!r:.80} hangs on {here}, expected one switch")
    if not switches:
        raise MalformedError(f"{path}: no line SwitchName=... Nodes=..., expected topology.conf of the tree plug-in")
    return switches


def switches_at(home: Path) -> Mapping[str, str]:
    """The same of the store's own FILE, read again when it changes; nothing where there is none.

    Raises: MalformedError.
    """
    path = home / FILE
    try:
        state = path.stat()
    except OSError:
        return {}
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int, _size: int) -> Mapping[str, str]:
    return MappingProxyType(switches_of(path))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}, expected a topology.conf") from error
    if len(content) > BYTES_MAX:
        raise MalformedError(f"{path}: more than {BYTES_MAX} bytes, expected topology.conf")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"{path}: byte {error.start} is no UTF-8, expected topology.conf") from error


def _lines(text: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Line numbers and NAME=VALUE pairs, names in lower case; a backslash at the end joins the next line."""
    begun, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if parts else number
        bare = line.partition("#")[0].rstrip()
        parts.append(bare.removesuffix("\\"))
        if not bare.endswith("\\"):
            yield begun, {name.lower(): value for name, value in PAIR.findall("".join(parts))}
            parts = []
    if parts:
        yield begun, {name.lower(): value for name, value in PAIR.findall("".join(parts))}


def _nodes(path: Path, number: int, nodes: str) -> tuple[str, ...]:
    try:
        return expand(nodes)
    except MalformedError as error:
        raise MalformedError(f"{path}, line {number}: {error}") from error
