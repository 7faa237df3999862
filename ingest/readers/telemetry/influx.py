"""Points in InfluxDB's line protocol."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import SERIES, labels_text
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS
from crosswind.ingest.readers.telemetry.node_name import is_node
from crosswind.ingest.readers.telemetry.series_rows import CollectedRows

WORD = r"(?:\\.|[^\\ ,=])++"
VALUE = r'(?:"(?:\\.|[^"\\])*+"|[^ ,"]++)'
LINE = re.compile(
    rf"(?P<key>(?:\\.|[^\\ ,])++(?:,{WORD}={WORD})*+) +"
    rf"(?P<fields>{WORD}={VALUE}(?:,{WORD}={VALUE})*+)(?: +(?P<time>-?[0-9]{{1,19}}))? *"
)
FIELD = re.compile(rf"({WORD})=({VALUE})")
UNESCAPED_COMMA = re.compile(r",(?<!\\,)")
ESCAPED = re.compile(r"\\([ ,=])")  # a backslash before anything else is one
NUMBER = re.compile(r"([+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4})?)([iu]?)")
WITHOUT_POINTS = re.compile(r"#|CREATE DATABASE ")  # comments, and the beginning of influx_inspect's exports
HOSTS = ("host", "hostname")
EXACT = 1 << 53
KEYS_BYTES = 1 << 26  # of measurements with their tags that are remembered
ENTRY_BYTES = 600  # of one of them, without its texts
NAMES = 10_000  # of series that are remembered
LONGEST_KEY, LONGEST_NAME = 16_384, 1000  # characters: of a measurement with its tags; of a measurement, or a field
WHEN = "time is not between 2001 and 2262 in ns since 1970; write it with precision ns"


@dataclass(frozen=True)
class InfluxReader:
    """One row of the set `series` for each numeric field, named `measurement.field`; times are ns.

    Source: https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/
    """

    name: ClassVar[str] = "influx"
    description: ClassVar[str] = "InfluxDB line protocol, times in ns (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line that is no comment is a point with a time in ns."""
        lines = (line.rstrip("\r") for line in plain_head(head).split("\n")[:-1])
        first = next((line for line in lines if line and not WITHOUT_POINTS.match(line)), "")
        match = LINE.fullmatch(first)
        return match is not None and len(match["time"] or "") == 19

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: UnavailableError."""
        reading = _Reading(context, CollectedRows(SERIES, report))
        for number, text in numbered_lines(path, report):
            if WITHOUT_POINTS.match(text):
                continue
            try:
                yield from reading.tables(text)
            except MalformedError as error:
                report.skip(number, text, str(error))
        yield from reading.rows.rest()
        report.remark(reading.remarks)


@dataclass(frozen=True)
class _Key:
    """The subject of a point."""

    measurement: str
    node: str | None
    labels: str
    names: dict[str, str] = field(compare=False)  # of series, by fields as written


@dataclass
class _Reading:
    """One pass over the lines."""

    context: Context
    rows: CollectedRows
    remarks: Counter[str] = field(default_factory=Counter)
    keys: dict[str, _Key] = field(default_factory=dict)
    keys_bytes: int = 0
    names: dict[str, dict[str, str]] = field(default_factory=dict)  # of series, by measurement and field
    names_count: int = 0

    def tables(self, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line completes. Raises: MalformedError."""
        match = LINE.fullmatch(text)
        if match is None:
            raise MalformedError("no point: expected measurement,tag=text field=number time")
        if match["time"] is None:
            raise MalformedError("a point without a time")
        ts_ns = int(match["time"])
        if not EARLIEST_SECONDS * 10**9 <= ts_ns <= LATEST_SECONDS * 10**9:
            raise MalformedError(WHEN)
        key = self._key(match["key"])
        names, values = self._numbers(match["fields"], key)
        if names:
            same = {"ts_ns": ts_ns, "node": key.node, "device": "", "labels": key.labels}
            row_bytes = min(len(text), 2 * LONGEST_NAME) + len(key.labels)
            yield from self.rows.extend(same, {"name": names, "value": values}, row_bytes=row_bytes)

    def _key(self, text: str) -> _Key:
        if text not in self.keys:
            if self.keys_bytes > KEYS_BYTES or self.names_count > NAMES:
                self.keys_bytes = self.names_count = 0
                self.keys, self.names = {}, {}
            self.keys[text] = self._parsed_key(text)
            self.keys_bytes += 2 * len(text) + ENTRY_BYTES
        return self.keys[text]

    def _parsed_key(self, text: str) -> _Key:
        if len(text) > LONGEST_KEY:
            raise MalformedError(f"a measurement with tags of {len(text)} characters; expected at most {LONGEST_KEY}")
        measurement, *pairs = UNESCAPED_COMMA.split(text)
        tags = {_plain(name): _plain(value) for name, value in (_pair(pair) for pair in pairs)}
        host = next((tags.pop(name) for name in HOSTS if is_node(tags.get(name))), self.context.node)
        measurement = _plain(measurement)
        return _Key(measurement, host or None, labels_text(tags), self.names.setdefault(measurement, {}))

    def _name(self, key: _Key, text: str) -> str:
        """Return the series of a new field. Raises: MalformedError."""
        if max(len(key.measurement), len(text)) > LONGEST_NAME:
            raise MalformedError(f"a measurement or field of more than {LONGEST_NAME} characters")
        if self.names_count > NAMES:  # and no new key since then
            key.names.clear()
        self.names_count += 1
        name = key.names[text] = f"{key.measurement}.{_plain(text)}"
        return name

    def _numbers(self, text: str, key: _Key) -> tuple[list[str], list[float]]:
        """Return names and values of the fields that are numbers."""
        names, values = [], []
        for name, value in FIELD.findall(text):
            match = NUMBER.fullmatch(value)
            if match and isfinite(number := float(match[1])):
                names.append(key.names.get(name) or self._name(key, name))
                values.append(number)
                if match[2] and abs(number) >= EXACT:
                    self.remarks["whole numbers from 2^53 on were rounded"] += 1
            else:
                self.remarks["fields that are texts, truths or no numbers were left out"] += 1
        return names, values


def _pair(text: str) -> tuple[str, str]:
    name, value = re.split(r"(?<!\\)=", text, maxsplit=1)
    return name, value


def _plain(text: str) -> str:
    return ESCAPED.sub(r"\1", text)
