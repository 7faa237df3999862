"""Requests of Prometheus by its remote-write protocol 1.0: samples of series, each with its labels.

Source: https://prometheus.io/docs/specs/prw/remote_write_spec/, prompb/types.proto of github.com/prometheus/prometheus
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.protobuf import (
    BYTES,
    SIZES,
    VARINT,
    double_of,
    fields,
    octets_of,
    signed,
    text_of,
    varint,
)
from crosswind.ingest.series.sample_tables import Bools, Samples, joined
from crosswind.ingest.series.series_text import MOST_LABELS, NAME_LABEL
from crosswind.ingest.series.sizes import check_labels, check_parts

SERIES_KEY = 1 << 3 | BYTES  # of a WriteRequest
SERIES, METADATA = 1, 3
VERSION_2 = (4, 5)  # fields of a request of that version, which 1.0 may not have
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
Refusals = Counter[str]  # samples that were not taken, by reason
KEPT_BYTES = 1 << 30  # memory for known series: some 650 000 with labels of 200 bytes
SERIES_BYTES = 1100  # of a known series, in addition to its texts
MOST_KEPT = 900_000  # series: all known ones may be MOST_SERIES


@dataclass
class Decoder:
    """Turns requests into samples; the places of series are kept for the next request.

    When there is no room, the known series stay, and others are worked out every time: forgetting all would cost that
    of all.
    """

    series: KnownSeries
    kept_bytes: int = KEPT_BYTES
    codes: dict[bytes, int] = field(default_factory=dict)  # by labels as sent
    is_full: bool = False
    _sent_bytes: int = 0

    def samples(self, body: bytes, refusals: Refusals) -> Iterator[tuple[KnownSeries, Samples]]:
        """Yield the samples of a WriteRequest; those that mark a series' end are NaN. Raises: MalformedError."""
        codes, tails, others = self._sorted(body)
        ends = np.frombuffer(b"".join(tails), FORM)
        if not _are_usual(ends).all():  # known labels, and then something else than one sample
            codes, ends = [], ends[:0]
            others = [octets_of(value) for number, _, value in fields(body) if number == SERIES]
        if self._has_room(others):
            yield self.series, _dated([_usual(codes, ends), *self._all(others, refusals)], refusals)
            return
        self.is_full = True
        yield self.series, _dated([_usual(codes, ends)], refusals)
        once = Decoder(KnownSeries(families=self.series.families))
        yield once.series, _dated([*once._all(others, refusals)], refusals)

    def _has_room(self, others: Sequence[bytes]) -> bool:
        count = len(self.series) + len(others)
        size = self.series.size_bytes + self._sent_bytes + 2 * sum(map(len, others)) + count * SERIES_BYTES
        return not others or (size <= self.kept_bytes and count <= MOST_KEPT)

    def _all(self, messages: Sequence[bytes], refusals: Refusals) -> Iterator[Samples]:
        count = 0
        for message in messages:
            samples = self._read(message, refusals)
            count += len(samples)
            check_parts(count)
            yield samples

    def _sorted(self, body: bytes) -> tuple[list[int], list[bytes], list[bytes]]:
        """Return numbers and ends of known series, and the messages of the others. Metadata is noted."""
        codes, tails, others = [], [], []
        place, size, codes_by_labels, further = 0, len(body), self.codes, 0
        while place < size:
            if body[place] != SERIES_KEY:
                place, further = self._other(body, place), further + 1
                check_parts(further)
                continue
            length, start = varint(body, place + 1)
            if start + length > size:
                raise _unexpected(place)
            place = start + length
            code = codes_by_labels.get(body[start : place - TAIL])
            if code is None:
                others.append(body[start:place])
                check_parts(len(others))
            else:
                codes.append(code)
                tails.append(body[place - TAIL : place])
        return codes, tails, others

    def _other(self, body: bytes, place: int) -> int:
        """Note metadata, skip unknown fields. Return the place after it. Raises: MalformedError."""
        key, start = varint(body, place)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            length, end = 0, varint(body, start)[1]
        else:
            length, start = varint(body, start) if wire == BYTES else (SIZES.get(wire, len(body)), start)
            end = start + length
        if number in (0, SERIES, *VERSION_2) or end > len(body):
            raise _unexpected(place)
        if number == METADATA and wire == BYTES:
            self._note(body[start:end])
        return end

    def _note(self, message: bytes) -> None:
        metadata = {number: value for number, _, value in fields(message)}
        kind, family = signed(metadata.get(1, 0)), text_of(metadata.get(2, b""))
        family_type = TYPES[kind] if 0 <= kind < len(TYPES) else ""
        self.series.update_metadata(family, family_type, text_of(metadata.get(4, b"")))

    def _read(self, message: bytes, refusals: Refusals) -> Samples:
        """Return the samples of one series that is new, or of an unusual form; times are still milliseconds."""
        labels: dict[str, str] = {}
        times, values = [], []
        for number, _, value in fields(message):
            if number == LABEL:
                name, text = _label(octets_of(value))
                if name in labels or len(labels) == MOST_LABELS:
                    raise MalformedError(f"label {name[:40]!r} is repeated, or more than {MOST_LABELS} labels")
                labels[name] = text
            elif number == SAMPLE:
                sample = {number: value for number, _, value in fields(octets_of(value))}
                times.append(signed(sample.get(2, 0)))
                values.append(double_of(sample.get(1, bytes(8))))
                check_parts(len(times))
            elif number == HISTOGRAM:
                refusals[NATIVE] += 1
        code = self._code(labels)
        if len(values) == 1 and len(message) > TAIL and _is_usual(message):
            self.codes[message[:-TAIL]] = code
            self._sent_bytes += len(message)
        length = len(values)
        codes, is_whole = np.full(length, code, np.int32), np.zeros(length, np.bool_)
        return Samples(codes, np.array(times, np.int64), np.array(values, np.float64), is_whole)

    def _code(self, labels: dict[str, str]) -> int:
        name = labels.pop(NAME_LABEL, "")
        if not name:
            raise MalformedError(f"series {str(labels)[:200]}: expected a label {NAME_LABEL}")
        check_labels(name, labels | {NAME_LABEL: name})
        return self.series.code(name, {label: text for label, text in labels.items() if text})


def _unexpected(place: int) -> MalformedError:
    return MalformedError(f"protobuf: octet {place + 1}: expected the series or metadata of a WriteRequest")


def _dated(parts: Sequence[Samples], refusals: Refusals) -> Samples:
    """Return all of them, their times in nanoseconds; those without a time are refused."""
    samples = joined(parts)
    milliseconds = samples.ts_ns
    is_dated = (milliseconds >= EARLIEST_MS) & (milliseconds < LATEST_MS)
    refusals[NOT_A_TIME] += int((~is_dated).sum())
    return samples.at(is_dated, milliseconds * 1_000_000).of(is_dated)


def _label(message: bytes) -> tuple[str, str]:
    label = {number: value for number, _, value in fields(message)}
    return text_of(label.get(1, b"")), text_of(label.get(2, b""))


def _is_usual(message: bytes) -> bool:
    """Return whether labels come first and then one sample of TAIL octets."""
    head, tail = message[:-TAIL], np.frombuffer(message[-TAIL:], FORM)
    try:
        return bool(_are_usual(tail).all()) and all(number == LABEL for number, *_ in fields(head))
    except MalformedError:
        return False


def _are_usual(tails: Tails) -> Bools:
    """Return a mask of the octets that are one sample in the usual form."""
    are_times = ((tails["time"][:, :5] & MORE) != 0).all(axis=1) & (tails["time"][:, 5] < MORE)
    are_usual: Bools = (tails["head"] == HEAD).all(axis=1) & (tails["key"] == TIME_KEY) & are_times
    return are_usual


def _usual(codes: list[int], tails: Tails) -> Samples:
    milliseconds = ((tails["time"].astype(np.int64) & 0x7F) << SHIFTS).sum(axis=1)
    values = tails["value"].astype(np.float64)
    return Samples(np.array(codes, np.int32), milliseconds, values, np.zeros(len(codes), np.bool_))
