"""What Prometheus sends by its remote-write protocol 1.0: samples of series, each with its labels.

Source: https://prometheus.io/docs/specs/prw/remote_write_spec/, prompb/types.proto of github.com/prometheus/prometheus
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crosswind.data.errors import MalformedError
from crosswind.ingest.prometheus.known_series import KnownSeries
from crosswind.ingest.prometheus.protobuf import BYTES, double_of, fields, octets_of, signed, text_of, varint
from crosswind.ingest.prometheus.sample_tables import Bools, Samples, joined
from crosswind.ingest.prometheus.series_text import MOST_LABELS, NAME_LABEL

SERIES_KEY = 1 << 3 | BYTES  # of a WriteRequest
METADATA = 3
LABEL, SAMPLE, HISTOGRAM = 1, 2, 4  # of a TimeSeries
# A series' only sample, as senders write it: field 2 of 16 octets; in it field 1, a double, and field 2, a time of six
# octets, as those from 2004 to 2109 are.
TAIL = 18
FORM = np.dtype([("head", "u1", 3), ("value", "<f8"), ("key", "u1"), ("time", "u1", 6)])
HEAD, TIME_KEY, MORE = (0x12, 0x10, 0x09), 0x10, 0x80
SHIFTS = np.arange(0, 42, 7, dtype=np.int64)
TYPES = ("", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset")
EARLIEST_MS, LATEST_MS = 10**12, 9_200_000_000_000  # 2001 to 2261
NOT_A_TIME = "a time that is not one in milliseconds from 2001 to 2261"
NATIVE = "a native histogram; expected classic ones"
Tails = NDArray[np.void]
Refusals = Counter[str]  # what was not taken, by reason


@dataclass
class Decoder:
    """Turns requests into samples; what was worked out of a series is kept for the next request."""

    known: KnownSeries
    codes: dict[bytes, int] = field(default_factory=dict)  # by labels as sent

    def samples(self, body: bytes, refusals: Refusals) -> Samples:
        """The samples of a WriteRequest; those that mark a series' end are NaN. Raises: MalformedError."""
        codes, tails, others = self._sorted(body)
        told = np.frombuffer(b"".join(tails), FORM)
        if not _are_usual(told).all():  # labels that were met before, and then something else than one sample
            codes, told, others = [], told[:0], [octets_of(value) for number, _, value in fields(body) if number == 1]
        samples = joined([_usual(codes, told), *(self._read(message, refusals) for message in others)])
        milliseconds = samples.ts_ns
        is_dated = (milliseconds >= EARLIEST_MS) & (milliseconds < LATEST_MS)
        refusals[NOT_A_TIME] += int((~is_dated).sum())
        return samples.at(is_dated, milliseconds * 1_000_000).of(is_dated)

    def _sorted(self, body: bytes) -> tuple[list[int], list[bytes], list[bytes]]:
        """Numbers and ends of series that were met before, and the messages of the others. Metadata is noted."""
        codes, tails, others = [], [], []
        place, size, known = 0, len(body), self.codes
        while place < size:
            key, (length, start) = body[place], varint(body, place + 1)
            if key != SERIES_KEY or start + length > size:
                place = self._other(body, place)
                continue
            place = start + length
            code = known.get(body[start : place - TAIL])
            if code is None:
                others.append(body[start:place])
            else:
                codes.append(code)
                tails.append(body[place - TAIL : place])
        return codes, tails, others

    def _other(self, body: bytes, place: int) -> int:
        """Notes metadata; gives the place behind it. Raises: MalformedError for what is neither that nor a series."""
        length, start = varint(body, place + 1)
        if body[place] != METADATA << 3 | BYTES or start + length > len(body):
            raise MalformedError(f"protobuf: octet {place + 1}: expected the series or metadata of a WriteRequest")
        told = {number: value for number, _, value in fields(body[start : start + length])}
        kind, family = signed(told.get(1, 0)), text_of(told.get(2, b""))
        told_type = TYPES[kind] if 0 <= kind < len(TYPES) else ""
        self.known.retell(family, told_type, text_of(told.get(4, b"")))
        return start + length

    def _read(self, message: bytes, refusals: Refusals) -> Samples:
        """The samples of one series that is new, or of an unusual form; times are milliseconds yet."""
        labels: dict[str, str] = {}
        times, values = [], []
        for number, _, value in fields(message):
            if number == LABEL:
                name, text = _label(octets_of(value))
                if name in labels or len(labels) == MOST_LABELS:
                    raise MalformedError(f"label {name[:40]!r} stands twice, or more than {MOST_LABELS} labels")
                labels[name] = text
            elif number == SAMPLE:
                told = {number: value for number, _, value in fields(octets_of(value))}
                times.append(signed(told.get(2, 0)))
                values.append(double_of(told.get(1, bytes(8))))
            elif number == HISTOGRAM:
                refusals[NATIVE] += 1
        code = self._code(labels)
        if len(values) == 1 and len(message) > TAIL and _is_usual(message):
            self.codes[message[:-TAIL]] = code
        length = len(values)
        codes, is_whole = np.full(length, code, np.int32), np.zeros(length, np.bool_)
        return Samples(codes, np.array(times, np.int64), np.array(values, np.float64), is_whole)

    def _code(self, labels: dict[str, str]) -> int:
        name = labels.pop(NAME_LABEL, "")
        if not name:
            raise MalformedError(f"series {labels!s:.200}: expected a label {NAME_LABEL}")
        return self.known.code(name, {label: text for label, text in labels.items() if text})


def _label(message: bytes) -> tuple[str, str]:
    told = {number: value for number, _, value in fields(message)}
    return text_of(told.get(1, b"")), text_of(told.get(2, b""))


def _is_usual(message: bytes) -> bool:
    """Whether labels come first and then one sample of TAIL octets."""
    head, tail = message[:-TAIL], np.frombuffer(message[-TAIL:], FORM)
    try:
        return bool(_are_usual(tail).all()) and all(number == LABEL for number, *_ in fields(head))
    except MalformedError:
        return False


def _are_usual(tails: Tails) -> Bools:
    """Which of these octets are one sample as senders write it."""
    are_times = ((tails["time"][:, :5] & MORE) != 0).all(axis=1) & (tails["time"][:, 5] < MORE)
    are_usual: Bools = (tails["head"] == HEAD).all(axis=1) & (tails["key"] == TIME_KEY) & are_times
    return are_usual


def _usual(codes: list[int], tails: Tails) -> Samples:
    milliseconds = ((tails["time"].astype(np.int64) & 0x7F) << SHIFTS).sum(axis=1)
    values = tails["value"].astype(np.float64)
    return Samples(np.array(codes, np.int32), milliseconds, values, np.zeros(len(codes), np.bool_))
