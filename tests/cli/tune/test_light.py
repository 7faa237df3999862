"""Verbs that a job script calls between two runs import the standard library alone where a server is asked."""

import subprocess
import sys

CODE = """
import sys
from crosswind.cli.main import main
code = main(["tune", "next", "s", "--server", "http://127.0.0.1:9"])
heavy = {"numpy", "sqlalchemy", "scipy", "sklearn", "duckdb", "pyarrow", "crosswind.data.store.store"}
heavy &= sys.modules.keys()
print(code, sorted(heavy))
"""


def test_next_through_a_server_loads_nothing_heavy() -> None:
    said = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "75 []"
    assert "does not answer" in said.stderr
