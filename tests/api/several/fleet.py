"""A fleet in one process: agents that fill spools of real segments, and ship them to whichever server answers."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.ingest.ship.shipper import Shipper
from crosswind.ingest.spool.segment import SweepRows
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

COUNTERS, DEVICES, SENSORS = 20, 48, 40
VALUES = COUNTERS * DEVICES + SENSORS  # of an agent a second: 1000
COUNTED = tuple(Column(f"c{number}_total", "a count", Kind.COUNTER) for number in range(COUNTERS))
LOAD = MetricSet("load", "counters", (*NODE_KEYS, *COUNTED))
WARMTH = MetricSet("warmth", "sensors", (*NODE_KEYS, Column("warm_celsius", "heat", Kind.GAUGE, scale=0.1)))
SENDERS = 32
SEGMENT_SWEEPS = 10
SECOND_NS = 1_000_000_000


class Agent:
    """One node's spool, and its shippers: a segment that one server did not acknowledge goes to the next."""

    def __init__(self, spool: Path, node: str, urls: Sequence[str]) -> None:
        self.node = node
        self.spool = spool
        self._shippers = [Shipper(spool, url) for url in urls]
        self._turn = sum(node.encode())

    def fill(self, first_ns: int, sweeps: int) -> None:
        """Seal a segment of so many sweeps, a second apart."""
        with SpoolWriter(self.spool, f"agent.{self.node}") as writer:
            for number in range(sweeps):
                ts_ns, (counts, heats) = first_ns + number * SECOND_NS, _measured(number)
                keys = ts_ns, ts_ns, self.node, "boot"
                writer.append_sweep([SweepRows(LOAD, *keys, counts), SweepRows(WARMTH, *keys, heats)])

    def ship(self) -> int:
        """Send what is sealed to one of the servers, another one than last. Return how many segments wait."""
        self._turn += 1
        self._shippers[self._turn % len(self._shippers)].ship_all()
        return len(sealed_segments(self.spool))

    @property
    def retries(self) -> int:
        """Return how many requests were answered with a refusal, or not at all."""
        return sum(shipper.shipped.retries for shipper in self._shippers)


@lru_cache(maxsize=100)
def _measured(number: int) -> tuple[list[list[str | int]], list[list[str | int]]]:
    """Return the rows of a sweep of counters, and of sensors."""
    rates = [[1000 + (device * 31 + place * 17) % 977 for place in range(COUNTERS)] for device in range(DEVICES)]
    counts = [[f"cpu{device}", *(number * rate for rate in own)] for device, own in enumerate(rates)]
    return counts, [[f"t{sensor}", 400 + (number * 7 + sensor) % 50] for sensor in range(SENSORS)]


class Fleet:
    """Agents that write a sweep each second and ship a segment every ten."""

    def __init__(self, folder: Path, agents: int, urls: Sequence[str]) -> None:
        names = [f"n{number:04}" for number in range(agents)]
        self._agents = [Agent(folder / name, name, urls) for name in names]
        self.first_ns = time.time_ns() // SECOND_NS * SECOND_NS - 3600 * SECOND_NS
        self.sweeps = 0
        self.seconds = 0.0  # until the last segment was acknowledged

    def run(self, seconds: float, over: threading.Event, *, drain_seconds: float = 300.0) -> int:
        """Ship for so long, then until all is acknowledged. Return how many segments are not, in the end."""
        start = time.monotonic()
        until = start + seconds
        with ThreadPoolExecutor(SENDERS) as pool:
            while time.monotonic() < until and not over.is_set():
                began = time.monotonic()
                waiting = sum(pool.map(self._turn_of, self._agents))
                self.sweeps += SEGMENT_SWEEPS
                time.sleep(max(0.0, SEGMENT_SWEEPS - (time.monotonic() - began)))
            end = time.monotonic() + drain_seconds
            while (waiting := sum(pool.map(Agent.ship, self._agents))) and time.monotonic() < end:
                time.sleep(0.2)
        self.seconds = time.monotonic() - start
        return waiting

    @property
    def retries(self) -> int:
        """Return how many requests were answered with a refusal, or not at all."""
        return sum(agent.retries for agent in self._agents)

    def _turn_of(self, agent: Agent) -> int:
        agent.fill(self.first_ns + self.sweeps * SECOND_NS, SEGMENT_SWEEPS)
        return agent.ship()

    def written(self) -> list[tuple[str, int]]:
        """Return node and time of every sweep that was written, sorted."""
        return [
            (agent.node, self.first_ns + number * SECOND_NS) for agent in self._agents for number in range(self.sweeps)
        ]
