"""Readings of a facility's sensors in lines of CSV or JSON."""

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.collectors.sensor_set import is_nameable, is_possible, number_of

NANOSECONDS = 1_000_000_000
FIRST_SECOND, LAST_SECOND = 946_684_800, 4_102_444_800  # of the years 2000 and 2100
BOTH_OFFSETS = re.compile(r"Z(?=[+-]\d{4}$)")  # mosquitto 2.0 writes local time with Z and then the true offset
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Line:
    """The reading in one line: the unit is empty if the line has none."""

    sensor: str
    value: float
    unit: str
    measured_ns: int


Parse = Callable[[str], Line]


def csv_parser(header: str, columns: Sequence[str]) -> Parse:
    """Return a parser for the lines under this header.

    `columns` are the names of time, sensor, value and unit; the unit is optional. Raises: MalformedError.
    """
    separator = ";" if ";" in header and "," not in header else ","
    names = [name.strip().lower() for name in _fields(header.lstrip("\ufeff"), separator)]
    wanted = [name.lower() for name in columns]
    if not set(wanted[:3]) <= set(names):
        raise MalformedError(f"expected columns {', '.join(columns[:3])} in the first line, found {header!r:.80}")
    places = [names.index(name) if name in names else None for name in wanted]

    def parse(text: str) -> Line:
        fields = _fields(text, separator)
        if len(fields) != len(names):
            raise MalformedError(f"expected {len(names)} fields, found {text!r:.80}")
        at, sensor, value, unit = ("" if place is None else fields[place].strip() for place in places)
        return _line(sensor, value, unit, at)

    return parse


def json_line(text: str) -> Line:
    """Parse a message as `mosquitto_sub -F %j` writes it: topic, payload and tst, or timestamp.

    The payload is a number, or an object of value, and perhaps unit and timestamp. Raises: MalformedError.
    """
    message = _object(text)
    payload = message.get("payload")
    if isinstance(payload, str) and payload.lstrip().startswith("{"):
        payload = _object(payload)
    fields: Mapping[str, object] = payload if isinstance(payload, dict) else {"value": payload}
    at = fields.get("timestamp")
    if at is None and message.get("retain") in (1, True):
        raise MalformedError(f"a retained message has no time of its measurement: {text!r:.80}")
    if at is None:
        at = message.get("timestamp", message.get("tst"))
    unit = fields.get("unit", message.get("unit", ""))
    return _line(message.get("topic"), fields.get("value"), unit, at)


def _line(sensor: object, value: object, unit: object, at: object) -> Line:
    if not isinstance(sensor, str) or not is_nameable(sensor):
        raise MalformedError(f"expected a sensor's name, found {sensor!r:.80}")
    number, measured_ns = _number(value), _nanoseconds(at)
    if number is None:
        raise MalformedError(f"sensor {sensor!r:.80}: expected a number, found {value!r:.80}")
    if measured_ns is None:
        raise MalformedError(
            f"sensor {sensor!r:.80}: expected seconds since 1970 or a time with its offset, found {at!r:.80}"
        )
    return Line(sensor, number, unit if isinstance(unit, str) else "", measured_ns)


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return number_of(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_possible(value):
        return None
    return float(value)


def _nanoseconds(at: object) -> int | None:
    """Return nanoseconds of seconds since 1970, or of a time with its offset from UTC; without one it is ambiguous."""
    seconds = _number(at)
    measured_ns = round(seconds * 1_000_000) * 1000 if seconds is not None else _instant(at)
    return measured_ns if measured_ns is not None and FIRST_SECOND <= measured_ns // NANOSECONDS < LAST_SECOND else None


def _instant(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(BOTH_OFFSETS.sub("", text))
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    since = at - EPOCH
    return (since.days * 86400 + since.seconds) * NANOSECONDS + since.microseconds * 1000


def _fields(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise MalformedError(f"expected CSV: {error}: {text!r:.80}") from error


def _object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"expected JSON: {text!r:.80}") from error
    if not isinstance(value, dict):
        raise MalformedError(f"expected a JSON object, found {text!r:.80}")
    return value
