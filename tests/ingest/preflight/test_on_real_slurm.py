"""A check as srun starts it, over two nodes of a real Slurm; needs root and Debian's Slurm packages."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.running import Slurm, running

from crosswind.cli.text.check import exclude_line

CHECK = ("-m", "crosswind", "check", "--seconds", "3", "--only", "loop,pairs")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running(tmp_path_factory.mktemp("slurm"), 2) as cluster:
        inherited = {name: text for name, text in cluster.environment.items() if not name.startswith("CROSSWIND_")}
        cluster.environment = inherited | {"CROSSWIND_HOME": str(cluster.home / "store"), "OMP_NUM_THREADS": "1"}
        yield cluster


def test_the_ranks_of_a_step_meet_on_its_first_node(slurm: Slurm) -> None:
    report = json.loads(slurm.ask("srun", "-N2", "--ntasks-per-node=1", sys.executable, *CHECK, "--json"))
    assert (report["nodes"], report["ranks"], report["method"]) == (["node1", "node2"], 2, "gloo")
    assert {row["node"] for row in report["measured"] if row["measure"] == "loop"} == {"node1", "node2"}
    [bandwidth] = [row for row in report["measured"] if row["measure"] == "bandwidth"]
    assert (bandwidth["node"], bandwidth["peer"]) == ("node1", "node2")
    assert (report["system"], report["job_id"]) == ("crosswind", "1")


def test_a_batch_script_measures_its_own_node_and_says_how_to_measure_all(slurm: Slurm) -> None:
    output = slurm.home / "batch"
    program = " ".join((sys.executable, *CHECK))
    slurm.ask("sbatch", "--wait", "-N2", "-n2", f"--output={output}", "--account=weather", f"--wrap={program}")
    said = Path(output).read_text()
    assert "crosswind: 1 node, " in said
    assert "this is no job step; srun --ntasks-per-node=1 crosswind check measures all nodes" in said


def test_slurm_takes_the_option_that_leaves_nodes_out(slurm: Slurm) -> None:
    fixed = ("--parsable", "--account=weather", "--output=/dev/null", "--wrap=true", "--hold")
    job_id = slurm.ask("sbatch", *fixed, exclude_line(["node2"])).strip()
    assert "ExcNodeList=node2" in slurm.ask("scontrol", "show", "job", job_id)
