"""A fleet ships to two servers on one PostgreSQL catalog and one lake, which are killed again and again."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.api.several.fleet import DEVICES, SENSORS, VALUES, Fleet
from tests.api.several.servers import ServerProcess, serving_all
from tests.conftest import free_port
from tests.postgres import Postgres, postgres

from crosswind.data.store.store import Store

AGENTS = int(os.environ.get("SOAK_AGENTS", "1000"))
MEMORY_BYTES = 600e6
KILL_SECONDS = 20.0
SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))  # `make soak` gives ten minutes


def disturb(servers: list[ServerProcess], database: Postgres, seconds: float, over: threading.Event) -> int:
    """Kill each server every 20 s, ten after the other, and restart PostgreSQL twice; return how often it was."""
    began, turn, restarts = time.monotonic(), 0, 0
    while not over.wait(KILL_SECONDS / 2) and time.monotonic() - began < seconds:
        if time.monotonic() - began > seconds * (restarts + 1) / 3 and restarts < 2:
            database.stop()
            database.start()
            restarts += 1
        server = servers[turn % 2]
        if server.is_running:
            server.kill()
        for one in servers:
            one.restart()
        turn += 1
    return restarts


def stored_of(store: Store, name: str) -> list[tuple[str, int, int, int]]:
    """Return node, time, rows and devices of every stored sweep of a set, sorted."""
    query = f"select node, ts_ns, count(*), count(distinct device) from {name} group by all order by all"
    with store.lake.connect() as connection:
        return connection.execute(query).fetchall()


@pytest.mark.thorough
@pytest.mark.host
def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    over, restarts = threading.Event(), []
    with postgres(free_port()) as database:
        url = f"{database.url}/postgres"
        Store.open(tmp_path / "home", database=url).close()
        servers = [ServerProcess(tmp_path / "home", url) for _ in range(2)]
        with serving_all(*servers):
            fleet = Fleet(tmp_path / "fleet", AGENTS, [server.url for server in servers])
            disturbing = threading.Thread(target=lambda: restarts.append(disturb(servers, database, SECONDS, over)))
            disturbing.start()
            try:
                waiting = fleet.run(SECONDS, over)
            finally:
                over.set()
                disturbing.join()
        with Store.open(tmp_path / "home", database=url) as store:
            stored = {name: stored_of(store, name) for name in ("load", "warmth")}
        rejected = list((tmp_path / "fleet").glob("*/*.rejected"))
    written, values = fleet.written(), fleet.sweeps * AGENTS * VALUES
    figures = {
        "rows sent": len(written) * (DEVICES + SENSORS),
        "rows stored": sum(rows for sweeps in stored.values() for _, _, rows, _ in sweeps),
        "segments not acknowledged": waiting,
        "requests in vain": fleet.retries,
        "sweeps a second of each agent": round(fleet.sweeps / fleet.seconds, 2),
        "kills of each server": [server.kills for server in servers],
        "restarts of PostgreSQL": restarts[0],
        "most memory, MB": [server.peak_bytes // 1_000_000 for server in servers],
        "us of servers a value": round(sum(server.cpu_seconds for server in servers) / values * 1e6, 2),
    }
    sys.stdout.write(f"{figures}\n")
    assert (waiting, rejected, restarts) == (0, [], [2])
    for name, devices in {"load": DEVICES, "warmth": SENSORS}.items():
        assert stored[name] == [(node, ts_ns, devices, devices) for node, ts_ns in written]
    assert all(server.kills >= 2 and server.peak_bytes < MEMORY_BYTES for server in servers)
