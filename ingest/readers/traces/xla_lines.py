"""The kind of the events on a line of XLA's profiler, by the names of its plane and line."""

import re

from crosswind.data.traces.trace import Kind

STREAM = re.compile(r"^(Stream\b|XLA Ops$|Async XLA Ops$|TensorCore)", re.IGNORECASE)


def kind_of_line(plane: str, line: str) -> Kind:
    """Return KERNEL for work of a device, which names tell apart further; of other lines, what their events are."""
    if not plane.startswith("/device:"):
        return Kind.FRAME if line.startswith("python") else Kind.CALL
    if STREAM.search(line):
        return Kind.KERNEL
    return Kind.STEP if line == "Steps" else Kind.ANNOTATION
