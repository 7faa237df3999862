"""A network namespace of its own for one script, where this machine lets us make one."""

import shutil
import subprocess
import sys

import pytest

ALONE = ["unshare", "--map-root-user", "--net", "--mount"]


def can_be_made() -> bool:
    """Whether namespaces, pairs of virtual interfaces and queues can be made here."""
    if not all(map(shutil.which, ("unshare", "ip", "tc"))):
        return False
    trial = "ip link add v0 type veth peer name v1 && tc qdisc add dev v0 root tbf rate 50mbit burst 64kb latency 5ms"
    return subprocess.run([*ALONE, "sh", "-c", trial], capture_output=True, check=False).returncode == 0


in_a_namespace = pytest.mark.skipif(not can_be_made(), reason="no network namespaces, veth or tbf here")


def output_of(setup: str, script: str) -> str:
    """What a Python script writes in a namespace that shell commands have prepared."""
    command = [*ALONE, "sh", "-ec", f'{setup}\nexec "$0" -c "$1"', sys.executable, script]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout
