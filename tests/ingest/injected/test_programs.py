"""Programs in the form of public ones, recorded unmodified by `crosswind run` and read back by the next verb."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import free_port
from tests.ingest.probe.adapters import frameworks
from tests.ingest.probe.adapters.launched import FORKED

from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store

PROGRAMS = Path(__file__).parent / "programs"
CROSSWIND = (sys.executable, "-m", "crosswind.cli.main")
FORKS = (sys.executable, str(FORKED), "2")  # in a third of torchrun's time
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")


@dataclass(frozen=True)
class Recorded:
    """A store after one run of a program."""

    home: Path
    said: str
    exit_code: int

    def asked(self, *words: str) -> Any:
        done = subprocess.run(
            [*CROSSWIND, *words, "--json"], env=variables(self.home), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)


def variables(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND")}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    return kept | meeting | {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab", "HF_HUB_OFFLINE": "1"}


def recorded(folder: Path, *words: str, more: Mapping[str, str] | None = None) -> Recorded:
    command = [*CROSSWIND, "run", "--no-agent", "--", *words]
    environment = variables(folder / "home") | dict(more or {})
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    return Recorded(folder / "home", done.stderr, done.returncode)


def test_nanogpt_is_recorded_with_the_arguments_that_its_configurator_reads(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text("n_embd = 16\n")
    words = ("small.py", "--batch_size=2", "--max_iters=7", "--out_dir=here", "--seed=3")
    came = recorded(tmp_path, *TORCHRUN, str(PROGRAMS / "nanogpt_train.py"), *words)
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    run, outcome = shown["run"], shown["outcome"]
    assert (run["workload"], run["world_size"], run["state"]) == ("nanogpt_train", 2, "completed")
    configuration = dict(run["configuration"])
    assert configuration.pop("config_argument1").startswith("sha256:")
    assert configuration == {"batch_size": 2, "max_iters": 7}
    assert (run["tags"]["argument.seed"], run["tags"]["argument.out_dir"]) == ("3", "here")
    assert outcome["steps"] == 8 - 1 - 3  # the first one shows where the loop is, then comes warm-up
    assert outcome["comm_seconds"] > 0
    assert [rank["rank"] for rank in shown["ranks"]] == [0, 1]


@pytest.mark.parametrize(("words", "unseen"), [((), 16), (("--by-hand",), 64 // 4)])
def test_a_training_that_marks_no_steps_has_those_of_its_collectives(
    words: tuple[str, ...], unseen: int, tmp_path: Path
) -> None:
    script = str(PROGRAMS / "unmarked_train.py")
    came = recorded(tmp_path, *FORKS, script, "--steps", "50", "--slow-rank", "1", *words)
    assert came.exit_code == 0, came.said
    outcome = came.asked("show")["outcome"]
    assert 50 - unseen - 5 <= outcome["steps"] <= 50 - unseen - 3  # warm-up is in none
    assert outcome["step_p50_seconds"] > 0.19
    with Store.open(came.home) as store:
        rows = store.lake.frame("select rank, step, comm_seconds as waited from step")
    assert rows[rows["rank"] == 0]["step"].tolist() == rows[rows["rank"] == 1]["step"].tolist()
    waited = rows.groupby("rank")["waited"].median()
    assert waited[0] > 0.1 > waited[1]


@pytest.mark.thorough
def test_mingpt_ddp_is_recorded_with_its_overrides(tmp_path: Path) -> None:
    words = ("trainer_config.batch_size=16", "+optimizer_config.learning_rate=1e-3", "data_config.path=./none.txt")
    came = recorded(tmp_path, *TORCHRUN, str(PROGRAMS / "mingpt_ddp.py"), *words)
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    run, outcome = shown["run"], shown["outcome"]
    assert run["configuration"] == {"optimizer_config.learning_rate": 0.001, "trainer_config.batch_size": 16}
    assert run["tags"]["argument.data_config.path"] == "./none.txt"
    assert outcome["steps"] > 5
    assert min(outcome["comm_seconds"], outcome["input_seconds"]) > 0


@pytest.mark.thorough
def test_lightnings_own_launcher_gives_each_process_its_rank(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="no Lightning: pip install lightning")
    script = str(PROGRAMS / "lightning_autoencoder.py")
    came = recorded(tmp_path, sys.executable, script, "--devices", "2", "--hidden", "8", "--seed", "5")
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    assert shown["run"]["configuration"] == {"devices": 2, "hidden": 8}
    assert (shown["run"]["world_size"], [rank["rank"] for rank in shown["ranks"]]) == (2, [0, 1])
    assert shown["outcome"]["steps"] == 16 - 3
    assert shown["outcome"]["comm_seconds"] > 0


@pytest.mark.thorough
def test_collectives_of_fsdp2_are_seen(tmp_path: Path) -> None:
    came = recorded(tmp_path, *TORCHRUN, str(PROGRAMS / "fsdp2_train.py"), "--mixed-precision", "--layers", "1")
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    assert shown["run"]["configuration"] == {"layers": 1, "mixed_precision": True}
    assert shown["outcome"]["comm_seconds"] > 0
    assert "collectives" not in shown["run"]["tags"]


@pytest.mark.thorough
@pytest.mark.parametrize("stage", [0, 2, 3])
def test_collectives_of_deepspeed_are_seen(tmp_path: Path, stage: int) -> None:
    frameworks.require("deepspeed")
    torchrun = (str(frameworks.PYTHON), *TORCHRUN[1:])
    path = f"{frameworks.PYTHON.parent}{os.pathsep}{os.environ['PATH']}"  # of ninja, by which it compiles
    came = recorded(
        tmp_path, *torchrun, str(PROGRAMS / "deepspeed_train.py"), "--stage", str(stage), more={"PATH": path}
    )
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    assert shown["run"]["configuration"] == {"stage": stage}
    assert (shown["run"]["world_size"], shown["outcome"]["steps"]) == (2, 12 - 1 - 3)
    assert shown["outcome"]["comm_seconds"] > 0
    assert "collectives" not in shown["run"]["tags"]


@pytest.mark.thorough
def test_a_trainer_script_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="no transformers: pip install transformers accelerate")
    words = "--output_dir out --per_device_train_batch_size 4 --max_steps 8 --report_to none --use_cpu --save_steps 4"
    came = recorded(tmp_path, *TORCHRUN, str(PROGRAMS / "hf_run_clm.py"), *words.split(), "--run_name", "tonight")
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    expected = {"max_steps": 8, "per_device_train_batch_size": 4, "save_steps": 4, "use_cpu": True}
    assert shown["run"]["configuration"] == expected
    assert shown["run"]["tags"]["argument.run_name"] == "tonight"
    assert shown["outcome"]["steps"] == 8 - 3
    assert shown["outcome"]["comm_seconds"] > 0


SPAWNS = """
import sys, torch, torch._dynamo
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
def train(rank, world_size, fails):
    distributed.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(12):
        if fails and rank == 1 and step == 5:
            raise RuntimeError("the weights are gone")
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    distributed.destroy_process_group()
if __name__ == "__main__":
    method = "fork" if "--fork" in sys.argv else "spawn"
    multiprocessing.start_processes(train, args=(2, "--fails" in sys.argv), nprocs=2, start_method=method)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("--fork",)], ids=["spawned", "forked"])
@pytest.mark.parametrize("more", [{}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}], ids=["alone", "one task a node"])
def test_processes_that_torch_starts_are_ranks(
    tmp_path: Path, more: Mapping[str, str], options: tuple[str, ...]
) -> None:
    (tmp_path / "spawns.py").write_text(SPAWNS)
    came = recorded(tmp_path, sys.executable, "spawns.py", *options, more=more)
    assert came.exit_code == 0, came.said
    shown = came.asked("show")
    assert (shown["run"]["world_size"], [rank["rank"] for rank in shown["ranks"]]) == (2, [0, 1])
    assert shown["outcome"]["steps"] == 12 - 1 - 3
    assert shown["outcome"]["comm_seconds"] > 0


@pytest.mark.parametrize(
    "options", [pytest.param((), marks=pytest.mark.thorough), ("--fork",)], ids=["spawned", "forked"]
)
def test_the_rank_that_failed_first_is_named_with_its_step_and_error(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "spawns.py").write_text(SPAWNS)
    came = recorded(tmp_path, sys.executable, "spawns.py", "--fails", *options)
    assert came.exit_code == 1
    why = "failed in step 4: RuntimeError: the weights are gone"
    assert f"{why}" in came.said.splitlines()[-1]
    assert "rank 1 on" in came.said.splitlines()[-1]
    assert why in came.asked("explain")["failure"]
    with Store.open(came.home) as store, store.catalog.read() as session:
        assert [run.state for run in session.runs.find(limit=2)] == [RunState.FAILED]


KILLED = """
import os, signal, time, torch
from torch import distributed
distributed.init_process_group("gloo")
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(8):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    if step == 4 and distributed.get_rank() == 1:
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGKILL)
distributed.barrier()
"""


@pytest.mark.thorough
def test_a_killed_rank_is_named_by_its_launcher(tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    came = recorded(tmp_path, *TORCHRUN, "killed.py")
    assert came.exit_code == 1
    assert "rank 1" in came.said.splitlines()[-1]
    assert "failed in step 4: killed by SIGKILL" in came.said.splitlines()[-1]


WITHOUT_RANKS = """
import multiprocessing, sys, torch, time
def train(barrier):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    barrier.wait()
    for step in range(12):
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    barrier.wait()
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [context.Process(target=train, args=(barrier,)) for _ in range(2)]
    for process in processes: process.start()
    for process in processes: process.join()
"""


@pytest.mark.thorough
def test_of_processes_without_a_rank_one_is_recorded_and_the_other_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text(WITHOUT_RANKS)
    came = recorded(tmp_path, sys.executable, "apart.py")
    assert came.exit_code == 0, came.said
    assert came.said.count("set RANK and WORLD_SIZE in each of its processes") == 1
    assert [rank["rank"] for rank in came.asked("show")["ranks"]] == [0]
