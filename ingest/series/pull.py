"""Pulling the content of a Prometheus server, window by window, into the store exactly once.

Raw samples are queried, by an instant query of a range vector: their times are those of the scrapes, so that rows of
our sets are consistent. A range query would give values of up to five minutes before at times without a scrape; it is
used if a step is given.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from crosswind.data.catalog.catalog import NewBatch
from crosswind.data.catalog.read_files import ReadFile
from crosswind.data.lake.landings import landings_of
from crosswind.data.lake.locks import alone
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.query import Server, TooMuchError
from crosswind.ingest.series.sample_tables import Samples, joined, tables, without_repeats
from crosswind.ingest.series.series_text import NAME_LABEL

EVERYTHING = '{__name__=~".+"}'
FIRST_WINDOW_MS, LONGEST_WINDOW_MS, SHORTEST_WINDOW_MS = 60_000, 3_600_000, 1_000
WANTED = 200_000  # samples of a window
DEFAULT_AGE_MS = 3_600_000  # before now, for the first pull, unless --since is given
LAG_MS = 30_000  # a scrape has the time of its start, and is visible when it ended
MOST_POINTS = 10_000  # of a series; Prometheus refuses 11 000
NS = 1_000_000
LOCK = ".prometheus.lock"


@dataclass(frozen=True)
class Wanted:
    """The series to pull, by selectors; with a step, their values at such times rather than as scraped."""

    selectors: tuple[str, ...] = (EVERYTHING,)
    step_ms: int | None = None


@dataclass
class Pulled:
    """The outcome of one pull."""

    since_ms: int
    until_ms: int
    windows: int = 0
    samples: int = 0
    rows: int = 0
    histograms: int = 0  # native ones, which are left out
    notes: list[str] = field(default_factory=list)


@dataclass
class Puller:
    """Pulls from one server into a store; its position is in the catalog."""

    store: Store
    system: str
    server: Server
    wanted: Wanted
    now_ms: Callable[[], int] = lambda: time.time_ns() // NS

    def pull(self, since_ms: int | None = None, until_ms: int | None = None) -> Pulled:
        """Store new samples, a window at a time. Raises: UnavailableError, InvalidInputError (also: no such span)."""
        with alone(self.store.home / LOCK) as is_alone:
            if not is_alone:
                raise UnavailableError(f"{self.store.home}: somebody else pulls into this store; wait for it to end")
            self._clear()
            return self._pull(since_ms, until_ms)

    def _pull(self, since_ms: int | None, until_ms: int | None) -> Pulled:
        latest = self.now_ms() - LAG_MS
        until = latest if until_ms is None else min(until_ms, latest)
        with self.store.catalog.read() as session:
            reached = session.positions.of(self.source, self.system)
        since = self.now_ms() - DEFAULT_AGE_MS if since_ms is None else since_ms
        pulled = Pulled(since if reached is None else reached // NS, until)
        if reached is not None and since_ms is not None:
            pulled.notes.append("goes on where it was: --since counts for the first pull alone")
        if until_ms is not None and until_ms <= pulled.since_ms:
            if reached is None:
                raise InvalidInputError(f"until {_moment(until_ms)}: expected later than {_moment(since)} (--since)")
            if until_ms < pulled.since_ms:
                pulled.notes.append(f"nothing to pull: it was pulled up to {_moment(pulled.since_ms)} before")
            return pulled
        self._windows(pulled)
        if pulled.histograms:
            pulled.notes.append(f"{pulled.histograms} samples are native histograms: left out; expected classic ones")
        return pulled

    def _windows(self, pulled: Pulled) -> None:
        start, until, window, longest = pulled.since_ms, pulled.until_ms, FIRST_WINDOW_MS, LONGEST_WINDOW_MS
        series = self._series_so_far()
        while start < until:
            end = min(start + window, until)
            try:
                count = self._window(series, start, end, pulled)
            except TooMuchError as error:
                if window <= SHORTEST_WINDOW_MS:
                    raise UnavailableError(f"{error}; narrow --match") from error
                longest = max(window // 2, SHORTEST_WINDOW_MS)  # every query that it gives up on costs a minute
                window = max(window // 4, SHORTEST_WINDOW_MS)
                continue
            start = end
            window = min(_next_window(window, count), longest)

    @property
    def source(self) -> str:
        """Return the identity of the pulled series, for the catalog."""
        identity = [self.server.url.rstrip("/"), sorted(self.wanted.selectors), self.wanted.step_ms]
        return f"prometheus-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:24]}"

    def _series_so_far(self) -> KnownSeries:
        series = KnownSeries()
        try:
            metadata = self.server.ask("metadata", {})
        except TooMuchError as error:
            raise UnavailableError(str(error)) from error
        for name, entries in metadata.items() if isinstance(metadata, dict) else ():
            if entries:
                series.families.types[name] = str(entries[0].get("type", ""))
                series.families.units[name] = str(entries[0].get("unit", ""))
        return series

    def _window(self, series: KnownSeries, start: int, end: int, pulled: Pulled) -> int:
        """Store one window. Return the number of its samples."""
        parts = [self._samples(series, selector, start, end) for selector in self.wanted.selectors]
        samples = without_repeats(joined([portion for portion, _ in parts]))
        rows = self._store(series, samples, start, end)
        pulled.windows += 1
        pulled.samples += len(samples)
        pulled.rows += rows
        pulled.histograms += sum(count for _, count in parts)
        return len(samples)

    def _samples(self, series: KnownSeries, selector: str, start: int, end: int) -> tuple[Samples, int]:
        """Return the samples after `start` and up to `end`, and how many native histograms there are."""
        step = self.wanted.step_ms
        if step is None:
            question = {"query": f"{selector}[{end - start}ms]", "time": _seconds(end)}
            data = self.server.ask("query", question)
        else:
            first = (start // step + 1) * step
            if first > end:
                return _samples_of([], series), 0
            if (end - first) // step > MOST_POINTS:
                raise TooMuchError(f"{self.server.url}: more than {MOST_POINTS} steps")
            question = {"query": selector, "start": _seconds(first), "end": _seconds(end), "step": _seconds(step)}
            data = self.server.ask("query_range", question)
        try:
            samples = _samples_of(data["result"], series)
            times = [at for entry in data["result"] for at, _ in entry.get("histograms", [])]
            histograms = sum(start < float(at) * 1000 <= end for at in times)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnavailableError(f"{self.server.url}: answers, but not as a Prometheus does; is it one?") from error
        return samples.of((samples.ts_ns > start * NS) & (samples.ts_ns <= end * NS)), histograms

    def _store(self, series: KnownSeries, samples: Samples, start: int, end: int) -> int:
        window_tables = list(tables(series, samples))
        identity = hashlib.sha256(f"{self.source} {self.system} {start} {end}".encode()).hexdigest()
        parts = {f"{identity[:32]}-{number}": table for number, table in enumerate(window_tables)}
        note = ReadFile(
            self.source, hashlib.sha256(self.system.encode()).hexdigest(), self.system, end, {}, tuple(parts)
        )
        staged = self.store.lake.stage(parts)
        with self.store.catalog.write() as session:
            session.read_files.put(note)
        files = self.store.lake.publish(staged).files
        rows = sum(map(len, window_tables))
        with self.store.catalog.write() as session:
            landings = landings_of(window_tables)
            session.lake_files.add(files)
            noted = NewBatch(identity, self.server.url[:200], rows, made_ns=time.time_ns())
            session.add_batches([noted], landings)
            session.positions.put(self.source, self.system, end * NS)
            session.read_files.put(replace(note, parts=()))
        return rows

    def _clear(self) -> None:
        """Remove parts of a pull that was killed before noting them."""
        with self.store.catalog.read() as session:
            begun = [file for file in session.read_files.of_path(self.source, self.system) if file.parts]
        for file in begun:
            self.store.lake.remove(file.parts)


def _next_window(window: int, count: int) -> int:
    """Return a window of about as many samples as wanted, at most four times as long."""
    fitting = window * WANTED // max(count, 1)
    return max(SHORTEST_WINDOW_MS, min(fitting, 4 * window, LONGEST_WINDOW_MS))


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _samples_of(result: Sequence[Any], series: KnownSeries) -> Samples:
    codes, counts, pairs = [], [], []
    for code, values in _series(result, series):
        codes.append(code)
        counts.append(len(values))
        pairs += values
    times = np.array([at for at, _ in pairs], np.float64)
    length = len(pairs)
    return Samples(
        np.repeat(np.array(codes, np.int32), np.array(counts, np.int64)),
        np.rint(times * 1000).astype(np.int64) * NS,
        np.array([float(text) for _, text in pairs], np.float64),
        np.ones(length, np.bool_),
    )


def _series(result: Sequence[Any], series: KnownSeries) -> Iterator[tuple[int, list[Any]]]:
    for entry in result:
        labels = dict(entry["metric"])
        name = labels.pop(NAME_LABEL, "")
        if not name:
            raise MalformedError("a selector gives series without a name; expected selectors, not expressions")
        yield series.code(name, labels), entry.get("values", [])
