"""Costs of a server before anybody has asked for anything."""

import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from tests.api.edge.attacker import cpu_seconds, resident_mb
from tests.serving import serving

HEAVY = ("jinja2", "pandas", "plotly", "scipy", "sklearn", "xgboost")
LOAD = f"""
import sys
import crosswind.api.server
print(*[name for name in {HEAVY!r} if name in sys.modules])
"""


def test_a_server_loads_neither_models_nor_pages_before_it_is_asked() -> None:
    command = [sys.executable, "-c", LOAD]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip() == ""


@pytest.mark.host
def test_a_server_is_ready_soon_small_while_idle_and_ends_in_good_order(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0") as (url, process):
        assert httpx2.get(f"{url}readyz").status_code == 200
        assert cpu_seconds(process.pid) < 2
        time.sleep(3)
        assert resident_mb(process.pid) < 200
        assert httpx2.get(f"{url}runs", headers={"Accept": "text/html"}, timeout=30).status_code == 200
        assert httpx2.get(f"{url}v1/nothing").json()["status"] == 404
        process.terminate()
        assert process.wait(timeout=10) == 0
