"""A real server over a store, for the time of a test."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(home: Path, port: int = 0) -> Iterator[str]:
    """Yield the address at which it answers; port 0 is any free one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    environment = kept | {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--json", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.wait(timeout=20)
