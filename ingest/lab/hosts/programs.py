"""Programs that set up the kernel's network: ip, tc, nft and others."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from crosswind.data.schema.errors import UnavailableError

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
}


def require_lab() -> None:
    """Check that a lab can be built here. Raises: UnavailableError."""
    if os.geteuid() != 0:
        raise UnavailableError(f"user id {os.geteuid()}: the lab makes network namespaces, run it as root")
    for name in PACKAGES:
        program(name)


def program(name: str, more: str = "/usr/sbin:/sbin") -> str:
    """Return the path of one of these programs, in PATH or in `more` folders. Raises: UnavailableError."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{more}")
    if path is None:
        raise UnavailableError(f"no program {name}: install the package {PACKAGES[name]}")
    return path


def ask(name: str, *arguments: str, lines: Sequence[str] = ()) -> str:
    """Return a program's output for these arguments and lines of input. Raises: UnavailableError."""
    done = subprocess.run(
        [program(name), *arguments], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise UnavailableError(f"{name} {' '.join(arguments)}: {said or f'exit {done.returncode}'}")
    return done.stdout
