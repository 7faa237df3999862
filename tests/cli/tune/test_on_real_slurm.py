"""The batch scripts of docs/tuning.md on a real Slurm; needs root and Debian's Slurm packages."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving import serving
from tests.slurm.running import Slurm, running

from crosswind import tune

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.py"
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "tuning"
SPACE = {"bucket_mb": {"kind": "ordinal", "values": [1, 5, 25]}, "batch": {"kind": "ordinal", "values": [8, 16]}}
TRAIN = """\
#!/bin/bash
if [ "$1" = preempted ]; then
    shift
    if [ ! -f "$CROSSWIND_CHECKPOINT" ]; then
        trap 'echo saved > "$CROSSWIND_CHECKPOINT"; exit 0' TERM USR1
        touch "$(dirname "$0")/running" "$(dirname "$0")/running-$CROSSWIND_TRIAL"
        while :; do sleep 0.1; done
    fi
fi
echo "step_seconds=0.$2"
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    home = tmp_path_factory.mktemp("slurm")
    with serving(home / "server") as (url, _), running(home / "slurm", 2) as cluster:
        train = cluster.home / "train"
        train.write_text(TRAIN)
        train.chmod(0o755)
        kept = {name: text for name, text in cluster.environment.items() if not name.startswith("CROSSWIND_")}
        path = f"{Path(sys.executable).parent}:{kept['PATH']}"
        kept |= {"PATH": path, "CROSSWIND_SERVER": url, "CROSSWIND_HOME": str(cluster.home / "client")}
        cluster.environment = kept | {"TRAIN": str(train), "STUDY": "ddp", "SHARED": str(cluster.home)}
        (cluster.home / "space.json").write_text(json.dumps(SPACE))
        cluster.ask("crosswind", "tune", "create", "ddp", "space.json", "--objective", "step_seconds")
        yield cluster


def test_every_script_of_the_guide_is_a_batch_script() -> None:
    scripts = sorted(EXAMPLES.glob("*.sbatch"))
    assert [script.stem for script in scripts] == ["array", "multi_node", "preemptible", "single"]
    for script in scripts:
        assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
        assert f"examples/tuning/{script.name}" in (EXAMPLES.parents[1] / "tuning.md").read_text()


def test_the_scripts_share_one_study_and_a_requeued_job_resumes_its_trial(slurm: Slurm) -> None:
    slurm.environment["TRAIN"] += " preempted"
    preempted = submit(slurm, "preemptible")
    slurm.wait_for_job(preempted, "RUNNING")
    slurm.ask("bash", "-c", "until [ -f running ]; do sleep 0.1; done")
    slurm.ask("scontrol", "requeue", preempted)
    slurm.wait_for_job(preempted, "PENDING")
    slurm.ask("scontrol", "update", f"jobid={preempted}", "starttime=now")
    slurm.environment["TRAIN"] = slurm.environment["TRAIN"].removesuffix(" preempted")
    slurm.wait_for_job(preempted, "COMPLETED")
    [resumed] = trials(slurm)
    assert resumed["state"] == "done"
    assert resumed["checkpoint"].endswith(f"{resumed['trial_id']}.pt")
    (slurm.home / f"running-{resumed['trial_id']}").unlink()
    for name, options in (("array", ("--array=1-2",)), ("multi_node", ())):
        slurm.wait_for_job(submit(slurm, name, *options), "COMPLETED")
    assert [trial["state"] for trial in trials(slurm)] == ["done"] * 4
    slurm.wait_for_job(submit(slurm, "single"), "COMPLETED")  # takes all that is left
    finished = trials(slurm)
    assert len({(trial["bucket_mb"], trial["batch"]) for trial in finished}) == 6
    assert all(trial["step_seconds"] == float(f"0.{trial['bucket_mb']}") for trial in finished)


@pytest.mark.thorough
def test_the_notebook_goes_on_from_an_array(slurm: Slurm) -> None:
    """The notebook of docs/tuning.md, its part on a cluster included; a folder takes the place of the server."""
    folder = slurm.home / "notebook"
    shutil.copytree(EXAMPLES, folder)
    environment = {name: text for name, text in slurm.environment.items() if name != "CROSSWIND_SERVER"}
    environment |= {"SBATCH_ACCOUNT": "weather", "SBATCH_TIMELIMIT": "5", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(NOTEBOOK), "python.ipynb"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tune.study("digits", folder=folder / "studies") as study:
        rows = study.trials
        assert repr(study.best) == done.stdout.splitlines()[-1]
    assert len(rows) == 16
    assert list(rows["state"][12:]) == ["done"] * 4
    assert rows["run_id"][12:].notna().all()


def test_a_preempted_element_of_an_array_is_requeued_alone(slurm: Slurm) -> None:
    slurm.ask("crosswind", "tune", "create", "elements", "space.json", "--objective", "step_seconds")
    kept = dict(slurm.environment)
    slurm.environment |= {"STUDY": "elements", "TRAIN": f"{kept['TRAIN']} preempted"}
    array = submit(slurm, "preemptible", "--array=1-2")
    slurm.wait_for({f"{array}_1": "RUNNING", f"{array}_2": "RUNNING"})
    wait_for_running(slurm, 2)
    elements = dict(line.split() for line in slurm.ask("squeue", "--noheader", "--format=%A %K", "-r").splitlines())
    element = elements[array]  # whose own id is that of the whole array
    other = "2" if element == "1" else "1"
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{array}_{element}")
    slurm.wait_for_job(f"{array}_{element}", "PENDING")
    slurm.ask("scontrol", "update", f"jobid={array}_{element}", "starttime=now")
    slurm.wait_for_job(f"{array}_{element}", "COMPLETED")
    slurm.wait_for_job(f"{array}_{other}", "RUNNING")
    assert "Restarts=0" in slurm.ask("scontrol", "show", "job", f"{array}_{other}")
    slurm.ask("scancel", array)
    records = json.loads(slurm.ask("crosswind", "tune", "status", "elements", "--json"))["trials"]
    assert [record["trial"]["state"] for record in records].count("done") == 1
    assert len(records) == 2
    slurm.environment = kept


def wait_for_running(slurm: Slurm, count: int) -> None:
    """Waits until so many programs of trials run that wait for a signal."""
    question = f"until [ $(ls running-* 2>/dev/null | wc -l) -ge {count} ]; do sleep 0.1; done"
    slurm.ask("bash", "-c", question)


def submit(slurm: Slurm, name: str, *options: str) -> str:
    """The id of the job of an example."""
    fixed = ("--parsable", "--account=weather", "--time=5", "--output=out-%j")
    return slurm.ask("sbatch", *fixed, *options, str(EXAMPLES / f"{name}.sbatch")).strip()


def trials(slurm: Slurm) -> list[dict[str, Any]]:
    """The study's trials, as exported, with their checkpoints."""
    records = json.loads(slurm.ask("crosswind", "tune", "status", "ddp", "--json"))["trials"]
    rows = json.loads(slurm.ask("crosswind", "tune", "export", "ddp", "--format", "json"))
    return [{**row, "checkpoint": record["checkpoint"]} for row, record in zip(rows, records, strict=True)]
