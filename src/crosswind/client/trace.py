"""The trace that a request belongs to, so that a server's log names it as the caller's does.

Source: W3C Trace Context.
"""

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module

FIELD = "traceparent"
FORM = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


def trace_fields(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the header fields of a request: of the current OpenTelemetry span, of $TRACEPARENT, or new."""
    if "opentelemetry.trace" in sys.modules:
        fields: dict[str, str] = {}
        import_module("opentelemetry.propagate").inject(fields)
        if FIELD in fields:
            return fields
    parent = FORM.fullmatch(environment.get("TRACEPARENT", ""))
    trace, flags = (parent[1], parent[3]) if parent else (os.urandom(16).hex(), "01")
    return {FIELD: f"00-{trace}-{os.urandom(8).hex()}-{flags}"}


def trace_id(fields: Mapping[str, str]) -> str:
    """Return the id of the trace that these header fields name, 32 hexadecimal digits."""
    return fields[FIELD].split("-")[1]
