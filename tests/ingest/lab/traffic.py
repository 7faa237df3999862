"""Traffic between the hosts of a lab, measured by programs inside them."""

import os
import shutil
import subprocess
import sys

from tests.needs import needs

from crosswind.ingest.lab.hosts.hosts import Host

TRIAL = """
ip link add v0 type veth peer name v1
ip tuntap add t0 mode tap
tc qdisc add dev v0 root tbf rate 50mbit burst 64kb latency 5ms
nft add table bridge trial
"""


def can_be_made() -> bool:
    """Return whether what a lab is built from is here: root, ip, tc and nft, and veth, tap, tbf and bridge tables."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "tc", "nft"))):
        return False
    return subprocess.run(["unshare", "--net", "sh", "-ec", TRIAL], capture_output=True, check=False).returncode == 0


in_a_lab = needs("root, iproute2, nftables", "or a kernel with veth, tap and tbf", unless=can_be_made())

RECEIVER = """
import socket, time
listener = socket.create_server(("", 9))
print("up", flush=True)
stream, _ = listener.accept()
begin, size, room = 0.0, 0, bytearray(1 << 20)
opened = time.monotonic()
while got := stream.recv_into(room):
    if not begin and time.monotonic() - opened > 0.3:  # the bucket is empty and the window open
        begin, size = time.monotonic(), -got
    size += got
print(size * 8 / 1e6 / (time.monotonic() - begin))
"""
SENDER = """
import socket, sys, time
stream = socket.socket()
stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)  # what is in it at the end still has to go
stream.connect((sys.argv[1], 9))
end = time.monotonic() + 0.8
while time.monotonic() < end:
    stream.sendall(bytes(1 << 16))
"""
ECHO = """
import socket
listener = socket.create_server(("", 7))
print("up", flush=True)
stream, _ = listener.accept()
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while word := stream.recv(1):
    stream.sendall(word)
"""
CALLER = """
import socket, sys, time
stream = socket.socket()
stream.connect((sys.argv[1], 7))
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(12):
    begin = time.monotonic()
    stream.sendall(b"?")
    stream.recv(1)
    times.append(time.monotonic() - begin)
print(min(times) * 1000)
"""
COLLECTOR = """
import socket
listener = socket.socket(type=socket.SOCK_DGRAM)
listener.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE: what is lost is lost on the way
listener.bind(("", 9))
print("up", flush=True)
count = 0
while listener.recv(64) != b"end":
    count += 1
print(count)
"""
SCATTERER = """
import socket, sys
sender = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    sender.sendto(b"datagram", (sys.argv[1], 9))
for _ in range(100):  # one of them surely arrives
    sender.sendto(b"end", (sys.argv[1], 9))
"""


def output_of(host: Host, script: str, *arguments: str) -> str:
    """Return what a Python script writes inside a host."""
    command = host.command([sys.executable, "-S", "-c", script, *arguments])
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=30).stdout


def answers(host: Host, script: str, caller: Host, call: str, *arguments: str) -> tuple[float, str]:
    """The number that a serving script ends with, and what the one that calls it writes."""
    command = host.command([sys.executable, "-S", "-c", script])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "up\n"
            called = output_of(caller, call, host.address, *arguments)
            return float(server.communicate(timeout=30)[0] or "nan"), called
        finally:
            server.kill()


def megabits(sender: Host, receiver: Host) -> float:
    """Mbit/s of one TCP stream."""
    return answers(receiver, RECEIVER, sender, SENDER)[0]


def round_trip_ms(caller: Host, host: Host) -> float:
    """The quickest of a dozen: what the way takes, without what the scheduler adds."""
    return float(answers(host, ECHO, caller, CALLER)[1])


def arrived(sender: Host, receiver: Host, count: int) -> float:
    """Return how many of so many datagrams arrive."""
    return answers(receiver, COLLECTOR, sender, SCATTERER, str(count))[0]
