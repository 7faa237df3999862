"""OTLP's binary messages, in the shape that its JSON encoding has, so that both are read alike.

Source: metrics/v1/metrics.proto and common/v1/common.proto of github.com/open-telemetry/opentelemetry-proto, 1.x
"""

import struct
from collections.abc import Mapping
from typing import Any

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.series.protobuf import Value, double_of, fields, octets_of, signed, text_of
from crosswind.ingest.series.sizes import check_parts

DEPTH = 16  # of messages in messages; 9 are usual
LIST = "*"  # before the type of a field that may come again
Message = dict[str, Any]
POINT = {2: ("startTimeUnixNano", "fixed"), 3: ("timeUnixNano", "fixed")}
MESSAGES: Mapping[str, Mapping[int, tuple[str, str]]] = {
    "Request": {1: ("resourceMetrics", "*ResourceMetrics")},
    "ResourceMetrics": {1: ("resource", "Resource"), 2: ("scopeMetrics", "*ScopeMetrics")},
    "Resource": {1: ("attributes", "*KeyValue")},
    "ScopeMetrics": {1: ("scope", "Scope"), 2: ("metrics", "*Metric")},
    "Scope": {1: ("name", "text"), 2: ("version", "text")},
    "Metric": {
        1: ("name", "text"),
        3: ("unit", "text"),
        5: ("gauge", "Numbers"),
        7: ("sum", "Numbers"),
        9: ("histogram", "Histogram"),
        10: ("exponentialHistogram", "Numbers"),
        11: ("summary", "Summary"),
    },
    "Numbers": {1: ("dataPoints", "*Number"), 2: ("aggregationTemporality", "int"), 3: ("isMonotonic", "bool")},
    "Histogram": {1: ("dataPoints", "*HistogramPoint"), 2: ("aggregationTemporality", "int")},
    "Summary": {1: ("dataPoints", "*SummaryPoint")},
    "Number": {
        **POINT,
        4: ("asDouble", "double"),
        6: ("asInt", "signed"),
        7: ("attributes", "*KeyValue"),
        8: ("flags", "int"),
    },
    "HistogramPoint": {
        **POINT,
        4: ("count", "fixed"),
        5: ("sum", "double"),
        6: ("bucketCounts", "packed Q"),
        7: ("explicitBounds", "packed d"),
        9: ("attributes", "*KeyValue"),
        10: ("flags", "int"),
        11: ("min", "double"),
        12: ("max", "double"),
    },
    "SummaryPoint": {
        **POINT,
        4: ("count", "fixed"),
        5: ("sum", "double"),
        6: ("quantileValues", "*Quantile"),
        7: ("attributes", "*KeyValue"),
        8: ("flags", "int"),
    },
    "Quantile": {1: ("quantile", "double"), 2: ("value", "double")},
    "KeyValue": {1: ("key", "text"), 2: ("value", "AnyValue")},
    "AnyValue": {
        1: ("stringValue", "text"),
        2: ("boolValue", "bool"),
        3: ("intValue", "int"),
        4: ("doubleValue", "double"),
        5: ("arrayValue", "Values"),
        6: ("kvlistValue", "Attributes"),
    },
    "Values": {1: ("values", "*AnyValue")},
    "Attributes": {1: ("values", "*KeyValue")},
}


def decoded(body: bytes) -> Message:
    """Decode an ExportMetricsServiceRequest. Raises: MalformedError (TooLargeError: too many parts)."""
    return _Decoding().message("Request", body, DEPTH)


class _Decoding:
    """Counts the parts of one request: a dictionary takes a hundred times the two octets of an empty message."""

    def __init__(self) -> None:
        self._count = 0

    def message(self, name: str, data: bytes, depth: int) -> Message:
        """Decode one message and those in it. Raises: MalformedError, TooLargeError."""
        if not depth:
            raise MalformedError(f"protobuf: nested deeper than {DEPTH} messages")
        layout, message = MESSAGES[name], Message()
        for number, _, value in fields(data):
            self._more(1)
            if number not in layout:
                continue
            key, kind = layout[number]
            if kind.startswith("packed"):
                self._more(len(octets_of(value)) // 8)
                message.setdefault(key, []).extend(_packed(kind[-1], octets_of(value)))
            elif kind.startswith(LIST):
                message.setdefault(key, []).append(self.message(kind[1:], octets_of(value), depth - 1))
            elif kind in MESSAGES:
                message[key] = self.message(kind, octets_of(value), depth - 1)
            else:
                message[key] = _scalar(kind, value)
        return message

    def _more(self, count: int) -> None:
        self._count += count
        check_parts(self._count)


def _packed(code: str, octets: bytes) -> tuple[Any, ...]:
    if len(octets) % 8:
        raise MalformedError("protobuf: expected a list of 64-bit numbers")
    return struct.unpack(f"<{len(octets) // 8}{code}", octets)


def _scalar(kind: str, value: Value) -> str | int | float | bool:
    if kind == "text":
        return text_of(value)
    if kind == "double":
        return double_of(value)
    if kind in ("fixed", "signed"):
        [number] = _packed("Q" if kind == "fixed" else "q", octets_of(value)) or (0,)
        return int(number)
    return bool(signed(value)) if kind == "bool" else signed(value)
