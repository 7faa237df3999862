"""Slurm's short form for many node names: n[1-3,07-10],gpu[01-02]-ib0."""

import itertools
import re
from collections.abc import Iterable

from crosswind.data.schema.errors import MalformedError

NODES_LIMIT = 100_000  # ten times the largest clusters; a line of 20 characters must not fill the memory
NAME_LIMIT = 253  # characters; the longest host name that the domain name system knows
UNASSIGNED = ("", "None assigned", "(null)")  # what Slurm writes for a job that never got nodes
TOKEN = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)|(,)")
RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
RANGES_ALONE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\[([0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)\]"
)  # what most lists are
LETTERS = re.compile(r"[A-Za-z0-9._-]+")
LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)")  # as much before it as a range can leave

Ranges = tuple[tuple[int, int, int], ...]  # first, last, width in digits


def short_form(text: str) -> str:
    """The list as written, which a later `expand` takes; empty for a job that never got nodes."""
    return "" if text.strip() in UNASSIGNED else text


def expand(text: str, limit: int = NODES_LIMIT) -> tuple[str, ...]:
    """The node names in the order written; none for a job that never got nodes.

    Raises: MalformedError, also for more than `limit` names.
    Source: scontrol(1), `show hostnames`.
    """
    if text.strip() in UNASSIGNED:
        return ()
    expressions = _expressions(text)
    _check_count(expressions, text, limit)
    names = ["".join(name) for parts in expressions for name in itertools.product(*map(_texts, parts))]
    for name in names:
        if not name[0].isalnum() or len(name) > NAME_LIMIT:
            raise MalformedError(f"node list {text[:80]!r}: {name[:80]!r} is no host name")
    return tuple(names)


def count(text: str, limit: int = NODES_LIMIT) -> int:
    """Return how many nodes `expand` names, without writing them out. Raises: MalformedError, as `expand` does."""
    simple = RANGES_ALONE.fullmatch(text)
    if simple and 0 < (names := _quick_count(simple[1])) <= limit:
        return names
    if text.strip() in UNASSIGNED:
        return 0
    expressions = _expressions(text)
    for parts in expressions:
        if (isinstance(parts[0], str) and not parts[0][0].isalnum()) or sum(map(_longest, parts)) > NAME_LIMIT:
            raise MalformedError(f"node list {text[:80]!r}: one of them is no host name")
    return _check_count(expressions, text, limit)


def _quick_count(ranges: str) -> int:
    """Return how many names these ranges stand for; 0 when one of them ends before it begins."""
    total = 0
    for piece in ranges.split(","):
        first, _, last = piece.partition("-")
        names = int(last or first) - int(first) + 1
        if names < 1:
            return 0
        total += names
    return total


def _check_count(expressions: list[list[str | Ranges]], text: str, limit: int) -> int:
    """Return how many names these stand for. Raises: MalformedError."""
    total = sum(map(_count, expressions))
    if total > limit:
        raise MalformedError(f"node list {text[:80]!r} stands for more than {limit} nodes")
    return total


def _longest(part: str | Ranges) -> int:
    """Characters of the longest text that one part of a name takes."""
    return len(part) if isinstance(part, str) else max(max(width, len(str(last))) for _first, last, width in part)


def _expressions(text: str) -> list[list[str | Ranges]]:
    """The comma-separated expressions, each as its literal and ranged parts."""
    expressions: list[list[str | Ranges]] = [[]]
    end = 0
    for token in TOKEN.finditer(text):
        if token.start() != end:
            break
        end = token.end()
        ranges, literal, _comma = token.groups()
        if ranges is not None:
            expressions[-1].append(_ranges(ranges, text))
        elif literal is None:
            expressions.append([])
        elif LETTERS.fullmatch(literal):
            expressions[-1].append(literal)
        else:
            raise MalformedError(f"node list {text[:80]!r}: {literal[:80]!r} cannot be part of a host name")
    if end != len(text):
        raise MalformedError(f"node list {text[:80]!r}: brackets do not pair at character {end + 1}")
    if not all(expressions):
        raise MalformedError(f"node list {text[:80]!r}: a name is missing beside a comma")
    return expressions


def _ranges(inside: str, text: str) -> Ranges:
    """Return the ranges that stand between two brackets."""
    ranges = []
    for piece in inside.split(","):
        match = RANGE.fullmatch(piece)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(first) > int(last):
            raise MalformedError(f"node list {text[:80]!r}: {piece[:80]!r} is no range such as 07-10")
        ranges.append((int(first), int(last), len(first)))
    return tuple(ranges)


def _count(parts: list[str | Ranges]) -> int:
    """Return how many names an expression stands for, without making them."""
    count = 1
    for part in parts:
        if not isinstance(part, str):
            count *= sum(last - first + 1 for first, last, _width in part)
    return count


def _texts(part: str | Ranges) -> list[str]:
    """The texts that one part of a name takes; numbers keep the width of the first."""
    if isinstance(part, str):
        return [part]
    return [str(number).zfill(width) for first, last, width in part for number in range(first, last + 1)]


def compress(names: Iterable[str]) -> str:
    """The short form of these names, each once: n[1-3,07-10],login. `expand` of it has the same names.

    The last number of a name varies in its bracket. Raises: MalformedError for what is no host name.
    Source: scontrol(1), `show hostlist`.
    """
    places: dict[tuple[str, str], dict[int, set[int]]] = {}
    plain: set[str] = set()
    for name in names:
        if not LETTERS.fullmatch(name) or not name[0].isalnum() or len(name) > NAME_LIMIT:
            raise MalformedError(f"{name[:80]!r} is no host name")
        match = LAST_NUMBER.fullmatch(name)
        if match is None:
            plain.add(name)
            continue
        before, digits, after = match.groups()
        places.setdefault((before, after), {}).setdefault(len(digits), set()).add(int(digits))
    expressions = sorted(plain)
    for (before, after), by_width in sorted(places.items()):
        pieces = [piece for width, numbers in sorted(by_width.items()) for piece in _pieces(numbers, width)]
        is_one = len(pieces) == 1 and "-" not in pieces[0]
        expressions.append(f"{before}{pieces[0]}{after}" if is_one else f"{before}[{','.join(pieces)}]{after}")
    return ",".join(expressions)


def _pieces(numbers: set[int], width: int) -> list[str]:
    """Runs of numbers as `07-10`; those of one width only, so that a range says how wide all in it are."""
    rising = sorted(numbers)
    runs = [list(run) for _, run in itertools.groupby(enumerate(rising), key=lambda place: place[1] - place[0])]
    ends = [(run[0][1], run[-1][1]) for run in runs]
    return [f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}" for low, high in ends]
