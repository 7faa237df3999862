"""A server of a store in a process of its own, for benchmarks."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.api.app import create_app
from crosswind.api.server import listen, server_of, url_of
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store


@contextmanager
def served(home: Path) -> Iterator[tuple[str, int]]:
    """The application of `crosswind serve` in a process of its own; where it answers, and its pid.

    Without what it does in the background: training would be in every figure for minutes.
    """
    command = [sys.executable, "-m", "benchmarks.served", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def _serve(home: Path) -> None:
    settings = ServerSettings(port=0)
    with Store.open(home) as store, listen(settings) as listening:
        app = create_app(store, settings)
        print(url_of(listening, settings), flush=True)
        gc.freeze()
        server_of(app).run(sockets=[listening])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
