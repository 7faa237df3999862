"""The code cells of a notebook, run one after another as a kernel runs them.

python notebook.py NOTEBOOK [TAG ...]    # in the notebook's folder, without the cells that have one of these tags
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def code_cells(notebook: Path, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the code of the cells that have none of these tags."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", ())
        if cell["cell_type"] == "code" and without.isdisjoint(tags):
            yield "".join(cell["source"])


def run(notebook: Path, without: frozenset[str]) -> None:
    """Run the cells in one namespace; print the last expression of a cell, as a notebook shows it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for code in code_cells(notebook, without):
        body = ast.parse(code).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), str(notebook), "exec"), namespace)
        if last:
            value = eval(compile(ast.Expression(last.value), str(notebook), "eval"), namespace)
            sys.stdout.write(f"{value!r}\n")


if __name__ == "__main__":
    sys.path.insert(0, ".")
    run(Path(sys.argv[1]), frozenset(sys.argv[2:]))
