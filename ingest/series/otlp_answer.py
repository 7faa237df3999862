"""The answer of a receiver of OTLP: refused points, if any, and a message for the sender.

Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response
"""

import json


def answer_json(refused: int, reasons: str) -> bytes:
    """Return an ExportMetricsServiceResponse in JSON."""
    partial = {"partialSuccess": {"rejectedDataPoints": str(refused), "errorMessage": reasons}}
    return json.dumps(partial if refused or reasons else {}).encode()


def answer_octets(refused: int, reasons: str) -> bytes:
    """Return an ExportMetricsServiceResponse in Protocol Buffers' wire format."""
    if not refused and not reasons:
        return b""
    message = reasons.encode()
    partial = (b"\x08" + _varint(refused) if refused else b"") + b"\x12" + _varint(len(message)) + message
    return b"\x0a" + _varint(len(partial)) + partial


def _varint(number: int) -> bytes:
    octets = bytearray()
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    return bytes([*octets, number])
