"""Blocks of `bacct -l`: one for every job, with lines wrapped at column 79."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError

JOB = re.compile(r"Job <([0-9]{1,18}(?:\[[0-9]{1,9}\])?)>, ")
EVENT = re.compile(
    r"(?P<day>[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9]) (?P<time>[0-9:]{8})(?: (?P<year>[0-9]{4}))?: (?P<text>.*)"
)
SUMS = "Accounting information about this job:"
INDENTS = (26, 21)  # blanks before a wrapped line: as many as a time takes, with its year or without
SECTION = re.compile("-{10}|SUMMARY:|[A-Z_]{2,}:|Accounting information")
OPENING = re.compile(r"(?:^|[,;] ?)([A-Z][A-Za-z_ ]{1,40}?)(?: \([a-z ]{1,20}\))? <")
LONGEST = 1 << 22  # characters of a block: the hosts of some 100 000 slots


@dataclass(frozen=True)
class Event:
    """An event of a job: the day as `Mon Oct  8`, the time of day, the year where it is given."""

    day: str
    time: str
    year: str
    text: str


@dataclass
class Block:
    """The account of one job."""

    number: int  # of its first line
    pieces: list[list[str]]  # the line that names the job, and each event, as wrapped
    sums: list[list[str]] = field(default_factory=list)  # words of the last table
    size: int = 0
    _is_open: bool = True
    _is_summed: bool = False

    @property
    def job_id(self) -> str:
        """Return the id as LSF's commands take it: `123`, or `123[4]` of an array."""
        match = JOB.match(self.pieces[0][0])
        return match[1] if match else ""

    @property
    def beginning(self) -> str:
        """Return the line that names the job, unwrapped."""
        return "".join(self.pieces[0])

    def take(self, line: str) -> None:
        """Sort a line in; sections other than the job's, its events and its sums are skipped."""
        self.size += len(line)
        if self.size > LONGEST:
            return
        if line.startswith(SUMS):
            self._is_open, self._is_summed = False, True
        elif SECTION.match(line):
            self._is_open = self._is_summed = False
        elif EVENT.match(line):
            self.pieces.append([line])
            self._is_open, self._is_summed = True, False
        elif self._is_open:
            self._continue(line)
        elif self._is_summed:
            self.sums.append(line.split())

    def _continue(self, line: str) -> None:
        indent = next((width for width in INDENTS if line.startswith(" " * width)), 0)
        if indent:
            self.pieces[-1].append(line[indent:])

    def events(self) -> Iterator[Event]:
        """Yield the events in the order of the block."""
        for pieces in self.pieces[1:]:
            if match := EVENT.match("".join(pieces)):
                yield Event(match["day"], match["time"], match["year"] or "", match["text"])

    def totals(self) -> dict[str, str]:
        """Return the last table's one row by its headings. Raises: MalformedError when they are not as many."""
        names, values = next(
            ((names, values) for names, values in zip(self.sums, self.sums[1:], strict=False) if "TURNAROUND" in names),
            ([], []),
        )
        if len(names) != len(values):
            raise MalformedError(f"{len(values)} sums {' '.join(values)[:80]!r}; expected {' '.join(names)}")
        return dict(zip(names, values, strict=True))


def blocks(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, Block]]:
    """Yield line number and beginning of each job's block, and the block."""
    block: Block | None = None
    for number, line in lines:
        if JOB.match(line):
            if block:
                yield block.number, block.pieces[0][0], block
            block = Block(number, [[line]])
        elif block:
            block.take(line)
    if block:
        yield block.number, block.pieces[0][0], block


def named_values(text: str) -> dict[str, str]:
    """Return the values in `<>` by name; of a repeated name the first, as users' texts may contain anything."""
    openings = list(OPENING.finditer(text))
    ends = [*(opening.start() for opening in openings), len(text)][1:]
    pieces = [(opening[1], text[opening.end() : end]) for opening, end in zip(openings, ends, strict=False)]
    return {name: piece.rpartition(">")[0] or piece for name, piece in reversed(pieces)}
