"""Names of what a lab makes in the kernel: they tell whose it is, so that what a killed lab left can be removed."""

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
    """A name of this process's own, which no other lab has, in this process or elsewhere."""
    return f"{PREFIX}{os.getpid()}-{start_ticks(os.getpid())}-{secrets.token_hex(3)}"


def is_abandoned(name: str) -> bool:
    """Return whether this names something of a lab whose process is no more."""
    match = NAME.match(name)
    if match is None:
        return False
    try:
        return start_ticks(int(match["pid"])) != int(match["start"])  # a pid is used again in time, both are not
    except UnavailableError:
        return True
