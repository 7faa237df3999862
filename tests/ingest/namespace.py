"""A network namespace of its own for one script, where this machine lets us make one."""

import shutil
import subprocess
import sys

from tests.needs import needs

ALONE = ["unshare", "--map-root-user", "--net", "--mount"]


def can_be_made() -> bool:
    """Return whether namespaces, pairs of virtual interfaces and queues can be made here."""
    if not all(map(shutil.which, ("unshare", "ip", "tc"))):
        return False
    trial = "ip link add v0 type veth peer name v1 && tc qdisc add dev v0 root tbf rate 50mbit burst 64kb latency 5ms"
    return subprocess.run([*ALONE, "sh", "-c", trial], capture_output=True, check=False).returncode == 0


in_a_namespace = needs("iproute2", "or a kernel with network namespaces, veth and tbf", unless=can_be_made())


def output_of(setup: str, script: str) -> str:
    """Return what a Python script writes in a namespace that shell commands have prepared."""
    command = [*ALONE, "sh", "-ec", f'{setup}\nexec "$0" -c "$1"', sys.executable, script]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout
