"""A program of `programs/` in forks of this process, which has imported what it imports: ranks in a third of the time.

python forked.py RANKS PROGRAM [ARGUMENT ...]
"""

import ast
import runpy
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from crosswind.ingest.lab.forks import in_forks


def preload(program: Path) -> None:
    """Import what the program imports, but ours and its neighbours, which are to see the rank's environment."""
    for name in imported(program):
        if name.partition(".")[0] != "crosswind" and not program.with_name(f"{name}.py").exists():
            with suppress(ImportError):
                import_module(name)


def imported(program: Path) -> Iterator[str]:
    """The modules that its first lines import."""
    for node in ast.parse(program.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def work() -> None:
    """Be the program."""
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    ranks, *sys.argv = sys.argv[1:]
    preload(Path(sys.argv[0]))
    sys.exit(in_forks(int(ranks), work))
