"""Scrapes in one file: where each of them begins, and when it was taken."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.sample_lines import Comments
from crosswind.ingest.series.sample_tables import Samples, joined, tables
from crosswind.ingest.series.sample_values import EARLIEST, LATEST, UNDATED

CLOCKS = ("node_time_seconds", "collector_last_sweep_timestamp_seconds")  # the time at which the scrape was taken
AT_ONCE = 200_000  # samples that become tables together
HELD = 1_000_000  # samples of one scrape
MOST_DECLARATIONS = 200_000  # different ones; more are refused
END = "# EOF"  # no family has this name
Lines = NDArray[np.int64]


@dataclass
class Scrapes:
    """The scrapes of a file in memory: the one that is being read, and dated ones on their way into tables.

    A scrape ends at `# EOF`, before a family that is declared again and, in a file without declarations, before its
    first series without a time. The last one, if nothing ends it and it is not the only one, may still be written: it
    would get no time, or rows that lack columns, and keep them.
    """

    path: Path
    report: Report
    series: KnownSeries
    written_ns: int
    said: dict[str, str] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)  # the lines that declared them
    before: tuple[set[str], list[str]] = (set(), [])
    first: int | None = None
    held: list[Samples] = field(default_factory=list)
    dated: list[Samples] = field(default_factory=list)
    is_whole: bool = True
    finished: int = 0
    is_dated_by_file: bool = False
    without_value: int = 0

    def declare(self, comments: Comments) -> list[int]:
        """Note types and units. Return the lines at which another scrape begins."""
        cuts, texts, place = [], comments.texts, 0
        while place < len(texts):
            family = self._family(texts[place])
            if family in self.declared or family == END:
                cuts.append(int(comments.numbers[place]))
                self.before, self.declared, self.order = (self.declared, self.order), set(), []
            if family == END:
                place += 1
                continue
            if not self.declared and self._is_as_before(texts, place):
                self.declared, self.order = self.before
                place += len(self.order)
                continue
            if family:
                self.declared.add(family)
            self.order.append(texts[place])
            place += 1
        return cuts

    def _is_as_before(self, texts: list[str], place: int) -> bool:
        """Return whether the scrape beginning here has the declarations of the one before: so most are read at once."""
        order = self.before[1]
        return bool(order) and texts[place : place + len(order)] == order

    def _family(self, text: str) -> str:
        """Return the family that is declared here, END, or nothing; types and units are noted."""
        family = self.said.get(text)
        if family is None and len(self.said) < MOST_DECLARATIONS:
            word, name, declaration = [*text.split(), "", "", ""][1:4]
            if word == "TYPE":
                self.series.families.types[name] = declaration
            elif word == "UNIT":
                self.series.families.units[name] = declaration
            family = self.said[text] = {"TYPE": name, "EOF": END}.get(word, "")
        return family or ""

    def take(self, samples: Samples, numbers: Lines, cuts: Sequence[int]) -> Iterator[pa.Table]:
        """Take a block's samples, and yield tables when there are enough."""
        declared = np.searchsorted(numbers, np.array(cuts, np.int64))
        places = sorted({*declared.tolist(), *self._repeated(samples)})
        places.append(len(samples))
        self._hold(samples.of(slice(0, places[0])))
        for start, end in pairwise(places):
            self._finish()
            self._hold(samples.of(slice(start, end)))
        if sum(map(len, self.dated)) > AT_ONCE:
            yield from self._tables()

    def end(self) -> Iterator[pa.Table]:
        """Yield the tables of the rest."""
        notes, last = self.report.notes, sum(map(len, self.held))
        if self.finished and last:
            notes.append(
                f"the last scrape, of {last} samples so far, waits: it may still be written; ingest the file again "
                f"when another follows it, or end it with a line `{END}`"
            )
            self._timed(joined(self.held))  # which refuses a second one without a time
            self.held = []
        self._finish()
        yield from self._tables()
        if self.without_value:
            notes.append(f"{self.without_value} samples are NaN, which is no value: left out")
        if self.is_dated_by_file:
            written = datetime.fromtimestamp(self.written_ns / 1e9, UTC)
            notes.append(f"samples without a time got that of the file's last change: {written:%Y-%m-%dT%H:%M:%SZ}")

    def _repeated(self, samples: Samples) -> list[int]:
        """Return where the first series without a time is repeated, in a file without declarations."""
        undated = np.flatnonzero(samples.ts_ns == UNDATED)
        if self.series.families.types or not len(undated):
            return []
        is_first_block = self.first is None
        if self.first is None:
            self.first = int(samples.codes[undated[0]])
        starts: list[int] = undated[samples.codes[undated] == self.first].tolist()
        return starts[1:] if is_first_block else starts

    def _hold(self, samples: Samples) -> None:
        self.held.append(samples)
        if sum(map(len, self.held)) > HELD:  # series by series, as a dump is: such has times
            held = joined(self.held)
            is_dated = held.ts_ns != UNDATED
            self.is_whole = False
            self.dated.append(held.of(is_dated).broken())
            self.held = [held.of(~is_dated)]

    def _finish(self) -> None:
        """End the present scrape."""
        if any(map(len, self.held)):
            scrape = self._timed(joined(self.held))
            self.dated.append(scrape if self.is_whole and _is_one_scrape(scrape) else scrape.broken())
            self.finished += 1
        self.held, self.is_whole = [], True

    def _timed(self, scrape: Samples) -> Samples:
        is_undated = scrape.ts_ns == UNDATED
        if not is_undated.any():
            return scrape
        time_ns = self._clock(scrape)
        if time_ns is None:
            if self.is_dated_by_file:
                raise MalformedError(
                    f"{self.path}: a second scrape without times; expected a time behind each value, or the series "
                    f"{CLOCKS[0]}, or one scrape a file, which then has the time of the file's last change"
                )
            time_ns, self.is_dated_by_file = self.written_ns, True
        return scrape.at(is_undated, time_ns)

    def _clock(self, scrape: Samples) -> int | None:
        """Return the time in one of the scrape's own series."""
        for name in CLOCKS:
            is_clock = np.isin(scrape.codes, self.series.named(name)) & (scrape.ts_ns == UNDATED)
            times = scrape.values[is_clock]
            if len(times) == 1 and EARLIEST <= times[0] < LATEST:
                return round(float(times[0]) * 1e6) * 1000
        return None

    def _tables(self) -> Iterator[pa.Table]:
        samples, self.dated = joined(self.dated) if self.dated else None, []
        if samples is None:
            return
        self.without_value += int(np.isnan(samples.values).sum())
        for table in tables(self.series, samples):
            self.report.read += len(table)
            yield table


def _is_one_scrape(samples: Samples) -> bool:
    """Return whether no series has two times, as in a dump, which goes through series one by one."""
    order = np.argsort(samples.codes, kind="stable")
    codes, times = samples.codes[order], samples.ts_ns[order]
    return not bool(((codes[1:] == codes[:-1]) & (times[1:] != times[:-1])).any())
