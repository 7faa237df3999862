"""Names of a lab's objects in the kernel, by which the remains of a killed lab are recognised."""

import os
import re
import secrets
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.kernel.procfs import start_ticks

PREFIX = "cwlab-"
NAME = re.compile(rf"{PREFIX}(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]{{6}}")
PROC = Path("/proc")
NAMESPACES = Path("/run/netns")  # ip-netns(8)


def new_name() -> str:
    """Return a name with this process's id that no other lab has."""
    return f"{PREFIX}{os.getpid()}-{start_ticks(os.getpid())}-{secrets.token_hex(3)}"


def is_abandoned(name: str) -> bool:
    """Return whether this is the name of a lab whose process has ended."""
    match = NAME.match(name)
    if match is None:
        return False
    try:
        return start_ticks(int(match["pid"])) != int(
            match["start"]
        )  # a pid is reused in time, but not with the same start
    except UnavailableError:
        return True
