"""The how-to of the client and its notebook, executed against a server over our own measured runs."""

import json
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from pyarrow import compute
from tests.docs.examples import BLOCK, ROOT, shape
from tests.docs.shell_cells import FIRST_LOOK, lab_server, shown
from tests.serving import answering

from crosswind.data.samples.lab_runs import load_lab_runs
from crosswind.data.store.store import Store

SAMPLES = ROOT / "data" / "samples" / "lab"
FEW = 40  # runs
SETS = ("ranks", "injections", "step")


@pytest.fixture(scope="module")
def few_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server over some runs of one workload with their steps, which are loaded and fitted quickly."""
    folder = tmp_path_factory.mktemp("few")
    runs = pq.read_table(SAMPLES / "runs.parquet")
    runs = runs.filter(compute.equal(runs["workload"], "image-classifier")).slice(0, FEW)
    pq.write_table(runs, folder / "runs.parquet")
    for name in SETS:
        table = pq.read_table(SAMPLES / f"{name}.parquet")
        pq.write_table(table.filter(compute.is_in(table["run_id"], runs["run_id"])), folder / f"{name}.parquet")
    with Store.open(folder / "home") as store:
        assert load_lab_runs(store, folder) == FEW
    with answering(folder / "home") as url:
        yield url


def test_every_snippet_of_the_how_to_runs(
    few_runs: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_SERVER", few_runs)
    namespace: dict[str, object] = {}
    for kind, code in BLOCK.findall((ROOT / "docs" / "client.md").read_text()):
        if kind == "python":
            exec(compile(code, "client.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "#SBATCH --time=" in printed
    assert "does not answer: Connection refused (4 tries in" in printed


def test_the_notebook_runs(few_runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_SERVER", few_runs)
    cells = list(shown(FIRST_LOOK))
    assert cells[-2].formats["text/plain"].startswith("#SBATCH --time=")
    assert {type(cell.answer).__name__ for cell in cells} >= {"DataFrame", "Explanation", "Figure", "RunPrediction"}


@pytest.mark.thorough
def test_the_notebook_shows_what_it_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all runs; numbers may differ."""
    with lab_server() as url:
        monkeypatch.setenv("CROSSWIND_SERVER", url)
        cells = [cell for cell in shown(FIRST_LOOK) if cell.formats]
    documented = [output for output in outputs() if "image/png" not in output["data"]]
    for cell, output in zip(cells, documented, strict=True):
        for kind, text in cell.formats.items():
            assert shape(text) == shape("".join(output["data"][kind])), kind


def test_the_notebook_is_small_and_one_that_a_kernel_reads() -> None:
    notebook = json.loads(FIRST_LOOK.read_text())
    assert notebook["nbformat"] == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert FIRST_LOOK.stat().st_size < 100_000
    assert any("image/png" in output["data"] for output in outputs())
    assert not any("error" in output["output_type"] for output in outputs())


def outputs() -> list[dict[str, dict[str, list[str]]]]:
    cells = json.loads(FIRST_LOOK.read_text())["cells"]
    return [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
