"""A notebook's cells in IPython, with what they show; run it to write down anew what the client's notebook shows.

python -m tests.docs.shell_cells
"""

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from playwright.sync_api import sync_playwright
from tests.docs.examples import ROOT
from tests.serving import answering
from traitlets.config import Config

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.store.store import Store

FIRST_LOOK = ROOT / "docs" / "examples" / "client" / "first_look.ipynb"
FIGURE_PIXELS = {"width": 800, "height": 310}
Picture = Callable[[go.Figure], str]


@dataclass(frozen=True)
class Shown:
    """The answer of a cell: the object, and its formats by media type."""

    answer: object
    formats: Mapping[str, str]


@contextmanager
def own_shell() -> Iterator[InteractiveShell]:
    """Yield a shell that keeps no history."""
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    try:
        yield shell
    finally:
        shell.reset(new_session=False)
        InteractiveShell.clear_instance()


def shown(notebook: Path) -> Iterator[Shown]:
    """Yield what each code cell answers, run one after another in one shell; a cell that fails raises its error."""
    with own_shell() as shell:
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                with capture_output():
                    result = shell.run_cell("".join(cell["source"]), store_history=False)
                result.raise_error()
                yield Shown(result.result, _formats(shell, result.result))


def _formats(shell: InteractiveShell, answer: object) -> Mapping[str, str]:
    """Return an answer by media type; a figure is drawn by whoever reads the notebook."""
    if answer is None or isinstance(answer, go.Figure):
        return {}
    formats: Mapping[str, str] = shell.display_formatter.format(answer)[0]
    return formats


def write_down(notebook: Path, cells: list[Shown], picture: Picture) -> None:
    """Replace the outputs of a notebook; a figure is kept as its picture, which every reader shows."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    codes = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for number, (cell, seen) in enumerate(zip(codes, cells, strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = [_output(seen, number, picture)] if seen.answer is not None else []
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _output(seen: Shown, number: int, picture: Picture) -> dict[str, Any]:
    if isinstance(seen.answer, go.Figure):
        data: dict[str, Any] = {"image/png": picture(seen.answer), "text/plain": ["<figure>"]}
    else:
        data = {kind: text.splitlines(keepends=True) for kind, text in seen.formats.items()}
    return {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def picture_of(figure: go.Figure) -> str:
    """Return a figure as PNG in base64, drawn by a browser."""
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path="/usr/bin/chromium") as browser:
        page = browser.new_page(viewport=FIGURE_PIXELS)
        page.set_content(figure.to_html(include_plotlyjs=True))
        page.wait_for_selector(".main-svg")
        return base64.b64encode(page.screenshot()).decode()


@contextmanager
def lab_server() -> Iterator[str]:
    """Yield the URL of a server over our own measured runs."""
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(Path(folder)) as store:
            load_lab_samples(store)
        with answering(Path(folder)) as url:
            yield url


if __name__ == "__main__":
    with lab_server() as url:
        os.environ["CROSSWIND_SERVER"] = url
        write_down(FIRST_LOOK, list(shown(FIRST_LOOK)), picture_of)
    sys.stdout.write(f"{FIRST_LOOK}: {FIRST_LOOK.stat().st_size} bytes\n")
