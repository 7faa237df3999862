"""Data points of OTLP as samples of series, named as Prometheus names the parts of histograms and summaries.

Source: https://opentelemetry.io/docs/specs/otel/metrics/data-model/, .../compatibility/prometheus_and_openmetrics/
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.series.families import COUNTS
from crosswind.ingest.series.known_series import KnownSeries, host_in
from crosswind.ingest.series.sample_tables import ROW_BYTES, Samples
from crosswind.ingest.series.sizes import check_labels, check_rows

DELTA, CUMULATIVE = 1, 2  # temporality
NO_VALUE = 1  # the flag of a point without a value
HOST = "host.name"  # of a resource, by OpenTelemetry's conventions
EARLIEST_NS, LATEST_NS = 10**18, 9_200_000_000_000_000_000  # 2001 to 2261
ENUMS = {"AGGREGATION_TEMPORALITY_DELTA": DELTA, "AGGREGATION_TEMPORALITY_CUMULATIVE": CUMULATIVE}
FORMS = {"gauge", "sum", "histogram", "summary", "exponentialHistogram"}  # a metric has one
LONGEST_TEXT, LONGEST_NUMBER, LONGEST_FLOAT = 4096, 20, 400
EXTREMES = ("_min", "_max")
ROUNDED = "a whole number that a 64-bit float cannot hold: stored rounded"
NUMBER = re.compile(r"-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
Part = tuple[str, dict[str, str], float]  # suffix of the name, further labels, and the value


@dataclass
class Points:
    """Collects samples; counts the points that were not taken, and remarks on others, by reason."""

    series: KnownSeries
    refusals: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    size_bytes: int = 0  # of the rows to come
    codes: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, request: object) -> None:
        """Add an ExportMetricsServiceRequest, as JSON has it. Raises: MalformedError (TooLargeError: too much)."""
        for of_resource in _maps(request, "resourceMetrics"):
            resource = _attributes(_map(_field(of_resource, "resource", {})))
            for of_scope in _maps(of_resource, "scopeMetrics"):
                scope = _map(_field(of_scope, "scope", {}))
                words = {f"otel.scope.{name}": _word(scope, name) for name in ("name", "version")}
                scope_labels = {name: word for name, word in words.items() if word}
                for metric in _maps(of_scope, "metrics"):
                    self._metric(metric, resource | scope_labels)

    def samples(self) -> Samples:
        """Return the samples collected so far."""
        length = len(self.codes)
        codes, times = np.array(self.codes, np.int32), np.array(self.times, np.int64)
        return Samples(codes, times, np.array(self.values, np.float64), np.zeros(length, np.bool_))

    def _metric(self, metric: Mapping[str, Any], outer: Mapping[str, str]) -> None:
        for form in (form for form in FORMS if _field(metric, form, None) is not None):
            data, labels = _map(metric[form]), dict(outer)
            is_delta = form != "gauge" and _temporality(data) == DELTA
            if is_delta:
                labels["otel.temporality"] = "delta"
            unit, name = _word(metric, "unit") or None, _word(metric, "name")
            check_labels(name, labels | {"": name})
            stream = _Stream(name, unit, form, _kind(form, data), labels, is_delta=is_delta)
            for point in _maps(data, "dataPoints"):
                self._point(stream, point)

    def _point(self, stream: "_Stream", point: Mapping[str, Any]) -> None:
        ns = _integer(_field(point, "timeUnixNano", 0))
        if _integer(_field(point, "flags", 0)) & NO_VALUE:
            return
        if stream.form == "exponentialHistogram":
            self.refusals["an exponential histogram; expected explicit buckets"] += 1
        elif not stream.name or not EARLIEST_NS <= ns < LATEST_NS:
            self.refusals["no name, or a time that is not of 2001 to 2261"] += 1
        else:
            own = _attributes(point)
            labels = own | {f"resource.{key}" if key in own else key: text for key, text in stream.labels.items()}
            size = check_labels(stream.name, labels) + len(stream.name) + ROW_BYTES
            if stream.form in ("gauge", "sum") and (whole := _field(point, "asInt", None)) is not None:
                self.remarks[ROUNDED] += int(float(_integer(whole))) != _integer(whole)
            for part in _parts(stream.form, point):
                self.size_bytes += size
                check_rows(self.size_bytes)
                self.codes.append(self._code(stream, labels, part))
                self.times.append(ns)
                self.values.append(part[2])

    def _code(self, stream: "_Stream", labels: dict[str, str], part: Part) -> int:
        end, further, _ = part
        kind = stream.kind if not end else None if stream.is_delta else "counter"
        kind = "gauge" if end in EXTREMES else kind
        node = host_in(stream.labels.get(HOST, "")) or self.series.node
        unit = None if end in COUNTS else stream.unit
        return self.series.code(stream.name + end, labels | further, kind=kind, unit=unit, node=node)


@dataclass(frozen=True)
class _Stream:
    """The common properties of a metric's points."""

    name: str
    unit: str | None
    form: str
    kind: str | None
    labels: Mapping[str, str]
    is_delta: bool


def _kind(form: str, data: Mapping[str, Any]) -> str | None:
    """Return counter or gauge; None for neither, such as a sum since the point before."""
    if form in {"gauge", "summary"}:
        return "gauge"
    if form != "sum" or _temporality(data) != CUMULATIVE:
        return None
    return "counter" if data.get("isMonotonic") is True else "gauge"


def _parts(form: str, point: Mapping[str, Any]) -> Iterator[Part]:
    if form in ("gauge", "sum"):
        whole = _field(point, "asInt", None)
        yield "", {}, _number(_field(point, "asDouble", math.nan)) if whole is None else float(_integer(whole))
        return
    if form == "histogram":
        yield from _buckets(point)
    for quantile in _maps(point, "quantileValues") if form == "summary" else ():
        yield (
            "",
            {"quantile": repr(_number(_field(quantile, "quantile", 0.0)))},
            _number(_field(quantile, "value", 0.0)),
        )
    yield "_count", {}, _number(_field(point, "count", 0))
    for end in ("_sum", *EXTREMES):
        number = _field(point, end[1:], None)
        if number is not None:
            yield end, {}, _number(number)


def _buckets(point: Mapping[str, Any]) -> Iterator[Part]:
    """Yield cumulative buckets, as Prometheus has them: OTLP counts each bucket by itself."""
    bounds = [_number(bound) for bound in _list(_field(point, "explicitBounds", []))]
    counts = [_integer(count) for count in _list(_field(point, "bucketCounts", []))]
    if counts and len(counts) != len(bounds) + 1:
        raise MalformedError(f"histogram: {len(counts)} counts for {len(bounds)} bounds; expected one more than bounds")
    for bound, count in zip([*map(repr, bounds), "+Inf"], accumulate(counts), strict=False):
        yield "_bucket", {"le": bound}, float(count)


def _attributes(holder: Mapping[str, Any]) -> dict[str, str]:
    labels = {}
    for attribute in _maps(holder, "attributes"):
        text = _text(_map(_field(attribute, "value", {})))
        if text:
            labels[_word(attribute, "key")] = text
    return labels


def _text(value: Mapping[str, Any]) -> str:
    """Return an attribute's value as a label: a text unchanged, anything else as JSON."""
    for form, content in value.items():
        if content is None:
            continue
        if form == "stringValue" and isinstance(content, str):
            return content[:LONGEST_TEXT]
        if form == "intValue":
            return str(_integer(content))
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))[:LONGEST_TEXT]
    return ""


def _temporality(data: Mapping[str, Any]) -> int:
    code = _field(data, "aggregationTemporality", 0)
    return ENUMS.get(code, 0) if isinstance(code, str) and not code.isdecimal() else _integer(code)


def _maps(holder: object, name: str) -> Iterator[dict[str, Any]]:
    for entry in _list(_field(_map(holder), name, [])):
        yield _map(entry)


def _field(holder: Mapping[str, Any], name: str, default: object) -> Any:
    """Return a field; null in JSON means that it is missing."""
    value = holder.get(name)
    return default if value is None else value


def _word(holder: Mapping[str, Any], name: str) -> str:
    value = _field(holder, name, "")
    if not isinstance(value, str):
        raise MalformedError(f"OTLP: {name} {value!r:.80}: expected a text")
    return value


def _map(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError(f"OTLP: {value!r:.80}: expected an object")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise MalformedError(f"OTLP: {value!r:.80}: expected a list")
    return value


def _integer(value: object) -> int:
    """Return a 64-bit number, which JSON has as a text."""
    if (
        isinstance(value, str)
        and value.isascii()
        and value.removeprefix("-").isdecimal()
        and len(value) <= LONGEST_NUMBER
    ):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64:
        return value
    raise MalformedError(f"OTLP: {value!r:.80}: expected a whole number of 64 bits")


def _number(value: object) -> float:
    """Return a double, which JSON may have as a text, too."""
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        return _float(value)
    return float(_integer(value))


def _float(text: str) -> float:
    is_special = text in ("NaN", "Infinity", "-Infinity")
    if not is_special and (len(text) > LONGEST_FLOAT or NUMBER.fullmatch(text) is None):
        raise MalformedError(f"OTLP: {text!r:.80}: expected a number")
    number = float(text)
    if math.isinf(number) and not is_special:
        raise MalformedError(f"OTLP: {text!r:.80}: more than a double can be")
    return number
