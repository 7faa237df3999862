"""Examples of the README, typed in its order by a newcomer who has the files that they name."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.docs.examples import ROOT, Example, Shell, examples_in, shape
from tests.needs import needs_data

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.store.store import Store

README = ROOT / "README.md"
RECORDED = ROOT / "tests" / "ingest" / "recorded"
LOGS = ROOT.parent / "shared" / "data" / "mlperf" / "logs"
OF_FIVE = "training_results_v4.1__Dell__results__8xXE9680x8H100-SXM-80GB__ssd__"
IN_A_DEMO = ("crosswind predict", "crosswind walltime", "crosswind weather")  # tests/end_to_end/test_demo.py types them
ELSEWHERE = ("crosswind sync prometheus",)  # tests/cli/test_sync_prometheus.py asks a real one


def examples(*begin: str) -> list[Example]:
    """Return the README's examples that begin so, in its order."""
    return [example for example in examples_in(README) if example.command.startswith(begin)]


def wrong_in(shell: Shell, wanted: Sequence[Example]) -> str:
    """Type these examples, and return what printed something else than the README says."""
    assert wanted
    lines = []
    for example in wanted:
        printed = shell.ask(example)
        if not example.matches(printed):
            lines.append(f"{example.command}\n--- documented\n{shape(example.output)}--- printed\n{shape(printed)}")
    return "\n".join(lines)


def test_every_example_is_typed_by_a_test() -> None:
    tested = (*IN_A_DEMO, *ELSEWHERE, "crosswind ingest", "crosswind runs --rates", "crosswind explain")
    tested += ("crosswind agent", "crosswind doctor")
    assert [example.command for example in examples("") if not example.command.startswith(tested)] == []


def test_accounting_is_read_as_the_readme_says(tmp_path: Path) -> None:
    shutil.copy(RECORDED / "sacct" / "slurm-22.05.txt", tmp_path / "sacct.txt")
    assert wrong_in(Shell(tmp_path, {"CROSSWIND_SYSTEM": "alps"}), examples("crosswind ingest sacct.txt")) == ""


@needs_data(LOGS)
def test_five_logs_of_a_benchmark_are_read_as_the_readme_says(tmp_path: Path) -> None:
    shutil.copy(RECORDED / "sacct" / "slurm-22.05.txt", tmp_path / "sacct.txt")
    (tmp_path / "ssd").mkdir()
    for log in LOGS.glob(f"{OF_FIVE}*"):
        shutil.copy(log, tmp_path / "ssd" / log.name.removeprefix(OF_FIVE))
    wanted = examples("crosswind ingest sacct.txt", "crosswind ingest ssd", "crosswind runs --rates")
    assert wrong_in(Shell(tmp_path, {"CROSSWIND_SYSTEM": "alps"}), wanted) == ""


def test_a_run_is_explained_as_the_readme_says(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        load_lab_samples(store)
    assert wrong_in(Shell(tmp_path, {"CROSSWIND_HOME": str(tmp_path / "home")}), examples("crosswind explain")) == ""


def test_the_agent_samples_and_its_spool_is_stored_as_the_readme_says(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    wanted = [
        Example(example.command.replace("/var/tmp/spool", str(spool)), example.output, example.number)
        for example in examples("crosswind agent", "crosswind ingest /var/tmp")
    ]
    sampled, stored = wanted
    printed = Shell(tmp_path, {"CROSSWIND_NODE": "vm"}).ask(sampled).replace(str(spool), "/var/tmp/spool")
    assert sources_apart(sampled.output) == sources_apart(printed)
    assert "batches stored" in Shell(tmp_path, {}).ask(stored)


def sources_apart(text: str) -> str:
    """Return the shape without the list of sources at the end, which is each machine's own."""
    lines = [line for line in text.splitlines() if line != "^C"]
    return shape("\n".join(line.partition(" sources: ")[0].rpartition(" ")[0] or line for line in lines))


def test_the_doctor_looks_at_what_the_readme_shows(tmp_path: Path) -> None:
    """Machines differ in what works, `ok` or `--`, and in the reasons."""
    [example] = examples("crosswind doctor")
    printed = Shell(tmp_path, {"CROSSWIND_SYSTEM": "vm"}).ask(example).splitlines()
    documented = [line for line in example.output.splitlines() if line.startswith(("  ok", "  --"))]
    names = {line[6:28].strip() for line in printed}
    assert {line[6:28].strip() for line in documented} <= names
    assert shape(printed[0]) == shape(example.output.splitlines()[0])
