"""A real server over a store, for the time of a test."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(home: Path, *words: str, stderr: int | None = None) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Yield the URL and the process of `crosswind serve` with these words; without any, at a free port."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    environment = kept | {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--json", *(words or ("--port", "0"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=20)
