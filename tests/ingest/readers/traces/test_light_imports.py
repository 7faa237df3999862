"""Processes that read traces load no more than they need, as there is one a core."""

import subprocess
import sys

HEAVY = {"duckdb", "pandas", "sqlalchemy", "scipy", "sklearn"}


def test_reading_traces_loads_no_database() -> None:
    program = "import sys, crosswind.ingest.readers.traces.files; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not HEAVY & set(done.stdout.split())
