"""Packet loss on a link, both ways."""

import time
from typing import ClassVar

from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.hosts.programs import ask
from crosswind.ingest.lab.injectors.injector import Target

PARTS = 100_000  # of which the percentage is a whole number


class PacketLoss:
    """Drops on the bridge, where neither end of a connection can see them."""

    kind: ClassVar[str] = "packet_loss"
    unit: ClassVar[str] = "%"
    limits: ClassVar[tuple[float, float]] = (100 / PARTS, 100.0)

    def __init__(self) -> None:
        self._host: Host | None = None

    def start(self, target: Target, strength: float) -> int:
        """Drop each packet with this probability. Raises: UnavailableError."""
        if self._host is None:
            _change(target.host, rules(target.host, strength))
            self._host = target.host
        return time.time_ns()

    def stop(self) -> int:
        """Let every packet through. Raises: UnavailableError."""
        if self._host is not None:
            _change(self._host, [f"delete table bridge {_table(self._host)}"])
            self._host = None
        return time.time_ns()


def rules(host: Host, percent: float) -> list[str]:
    """Return the lines of input for nft. Source: nft(8), numgen expression."""
    chance = f"numgen random mod {PARTS} < {round(percent * PARTS / 100)} counter drop"
    chain = f"bridge {_table(host)} forward"
    return [
        f"create table bridge {_table(host)}",
        f"add chain {chain} {{ type filter hook forward priority 0; }}",
        f'add rule {chain} iifname "{host.port}" {chance}',
        f'add rule {chain} oifname "{host.port}" {chance}',
    ]


def _table(host: Host) -> str:
    return f"loss_{host.port}"


def _change(host: Host, lines: list[str]) -> None:
    ask("ip", "netns", "exec", host.bridge, "nft", "-f", "-", lines=lines)
