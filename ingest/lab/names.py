"""Names of what a lab makes in the kernel: they tell whose it is, so that what a killed lab left can be removed."""

import os
import re
import secrets
from pathlib import Path

PREFIX = "cwlab-"
NAME = re.compile(rf"{PREFIX}(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]{{6}}")
PROC = Path("/proc")
NAMESPACES = Path("/run/netns")  # ip-netns(8)


def new_name() -> str:
    """A name of this process's own, which no other lab has, in this process or elsewhere."""
    return f"{PREFIX}{os.getpid()}-{start_of(os.getpid())}-{secrets.token_hex(3)}"


def is_abandoned(name: str) -> bool:
    """Whether this names something of a lab whose process is no more."""
    found = NAME.match(name)
    return found is not None and start_of(int(found["pid"])) != int(found["start"])


def start_of(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; none where there is none or it has ended.

    A pid is used again in time, the pair of both is not. Source: proc_pid_stat(5).
    """
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])
