"""Ranks of programs that know nothing of us, recorded under `crosswind run`."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from crosswind.data.metric import Scalar
from crosswind.data.steps import PHASES
from crosswind.ingest.injected import FOLDER, injected
from crosswind.ingest.injected.on_path.sitecustomize import RANK_VARIABLES
from crosswind.ingest.probe import place
from crosswind.ingest.spool import RecordFrame, RowsFrame, read_frames, sealed_segments

RUN = {"CROSSWIND_RUN_ID": "r1", "CROSSWIND_SYSTEM": "lab", "OMP_NUM_THREADS": "1"}
RANK_0 = {"RANK": "0", "WORLD_SIZE": "1"}
LOOP = """
import sys, time
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = DataLoader(torch.randn(12, 4), batch_size=4)
def learn(batch):
    model(batch).sum().backward()
    optimizer.step()
"""


def ran(spool: Path, code: str, told: Mapping[str, str] = RANK_0, *options: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | RUN | {"CROSSWIND_SPOOL": str(spool)} | injected({}) | dict(told)
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def trained(spool: Path, code: str, told: Mapping[str, str] = RANK_0) -> None:
    done = ran(spool, LOOP + code, told)
    assert (done.returncode, done.stderr) == (0, "")


def column(spool: Path, name: str, metric_set: str = "step") -> list[Scalar]:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    found = [frame for frame in frames if isinstance(frame, RowsFrame) and frame.metric_set.name == metric_set]
    return [value for frame in found for value in frame.columns[name]]


def records(spool: Path, kind: str, *names: str) -> list[tuple[object, ...]]:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    values = [frame.value for frame in frames if isinstance(frame, RecordFrame) and frame.record == kind]
    return [tuple(value.get(name) for name in names) for value in values]


DATA_PARALLEL = """
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
distributed.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(torch.randn(80, 64), batch_size=8)
for epoch in range(2):
    for batch in data:
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
    with torch.no_grad():
        for batch in data:
            model.module(batch)
distributed.destroy_process_group()
"""


def test_an_unchanged_program_under_torchrun_is_recorded_with_all_its_steps_and_collectives(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DATA_PARALLEL)
    spool = tmp_path / "spool"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(tmp_path / "train.py")]
    command = [sys.executable, "-m", "crosswind.cli.main", "run", "--no-ingest", "--no-agent", "--", *torchrun]
    environment = os.environ | {"CROSSWIND_SPOOL": str(spool), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    numbered = sorted(zip(column(spool, "rank"), column(spool, "step"), strict=True))  # type: ignore[type-var]
    assert numbered == [(rank, step) for rank in (0, 1) for step in range(20)]
    durations = column(spool, "duration_seconds")
    for duration, *phases in zip(durations, *(column(spool, f"{phase}_seconds") for phase in PHASES), strict=True):
        assert sum(phases) == duration  # type: ignore[arg-type]
        assert min(phases) >= 0  # type: ignore[type-var, operator]
    assert all(column(spool, "input_seconds"))
    assert len(column(spool, "ts_ns", "collective")) == 40  # a bucket a step
    assert len(set(column(spool, "run_id"))) == 1
    assert sorted(records(spool, "rank", "rank")) == [(0,), (1,)]
    assert ("train", 2, "completed") in records(spool, "run", "workload", "world_size", "state")


@pytest.mark.parametrize(
    ("told", "rank"),
    [
        ({"RANK": "3", "WORLD_SIZE": "4"}, 3),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, 1),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77", "SLURM_LOCALID": "1"}, 5),
        ({}, 0),
    ],
    ids=["torchrun", "Open MPI", "srun", "alone"],
)
def test_ranks_of_every_launcher_are_recorded(tmp_path: Path, told: Mapping[str, str], rank: int) -> None:
    trained(tmp_path, "for batch in data: learn(batch)", told)
    assert column(tmp_path, "step") == [0, 1, 2]
    assert set(column(tmp_path, "rank")) == {rank}
    assert records(tmp_path, "rank", "run_id", "rank") == [("r1", rank)]


def test_the_hook_knows_the_rank_variables_that_the_probe_knows() -> None:
    assert RANK_VARIABLES == place.RANK_VARIABLES


def test_what_comes_after_a_step_is_no_input_and_what_comes_after_an_epoch_is_in_no_step(tmp_path: Path) -> None:
    trained(tmp_path, "for _ in 'ab':\n for batch in data: learn(batch); time.sleep(0.05)\n time.sleep(1)")
    assert column(tmp_path, "step") == list(range(6))
    others = column(tmp_path, "other_seconds")
    assert [other > 45_000_000 for other in others] == [False, True, True, False, True, True]  # type: ignore[operator]
    assert max(column(tmp_path, "duration_seconds")[1:]) < 900_000_000  # type: ignore[type-var, operator]


def test_time_in_the_loader_is_input_with_the_workers_start(tmp_path: Path) -> None:
    slow = """
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 3
    def __getitem__(self, i): time.sleep(0.1); return torch.randn(4)
for batch in DataLoader(Slow()): learn(batch)
"""
    trained(tmp_path, slow)
    assert min(column(tmp_path, "input_seconds")) >= 100_000_000  # type: ignore[type-var, operator]


def test_a_step_is_the_optimizers_whatever_batches_it_gathers(tmp_path: Path) -> None:
    trained(
        tmp_path, "for _ in 'ab':\n for i, b in enumerate(data): model(b).sum().backward(); i != 2 or optimizer.step()"
    )
    assert column(tmp_path, "step") == [0, 1]


def test_of_two_optimizers_the_first_one_counts(tmp_path: Path) -> None:
    other = "other = torch.optim.Adam(model.parameters())\nfor batch in data: learn(batch); other.step(); other.step()"
    trained(tmp_path, other)
    assert column(tmp_path, "step") == [0, 1, 2]


def test_an_evaluation_before_the_training_begins_no_step(tmp_path: Path) -> None:
    code = "with torch.no_grad():\n for batch in data: model(batch); time.sleep(0.2)\nfor batch in data: learn(batch)"
    trained(tmp_path, code)
    assert column(tmp_path, "step") == [0, 1, 2]
    assert max(column(tmp_path, "duration_seconds")) < 500_000_000  # type: ignore[type-var, operator]


def test_without_a_loader_steps_are_counted_from_the_first_steps_end(tmp_path: Path) -> None:
    trained(tmp_path, "for _ in range(5): learn(torch.randn(2, 4)); time.sleep(0.02)")
    assert column(tmp_path, "step") == [0, 1, 2, 3]
    assert max(column(tmp_path, "other_seconds")) == 0  # type: ignore[type-var]
    assert min(column(tmp_path, "compute_seconds")) > 19_000_000  # type: ignore[type-var, operator]


def test_whoever_asks_one_batch_ahead_loses_no_step(tmp_path: Path) -> None:
    ahead = """
def ahead(source):
    source = iter(source)
    batch = next(source)
    for following in source:
        yield batch
        batch = following
    yield batch
for _ in 'ab':
    for batch in ahead(data): learn(batch)
"""
    trained(tmp_path, ahead)
    assert column(tmp_path, "step") == [0, 1, 2, 3, 4, 5]


OWN = "import crosswind\nwith crosswind.run(workload='own') as run:\n for batch in run.steps(data): learn(batch)"


@pytest.mark.parametrize("before", ["", "next(iter(data))\n", "torch.randn(2)\n"])
def test_a_script_that_records_itself_is_recorded_once(tmp_path: Path, before: str) -> None:
    trained(tmp_path, f"{before}{OWN}\nfor batch in data: learn(batch)")
    assert column(tmp_path, "step") == [0, 1, 2]
    told = set(records(tmp_path, "run", "run_id"))
    assert told == {("r1",)}
    assert ("own", "completed") in records(tmp_path, "run", "workload", "state")


def test_a_script_that_records_itself_before_it_imports_torch_is_recorded_once(tmp_path: Path) -> None:
    code = (
        f"import crosswind\nwith crosswind.run() as run:\n exec({LOOP!r})\n for batch in run.steps(data): learn(batch)"
    )
    done = ran(tmp_path, code)
    assert (done.returncode, done.stderr) == (0, "")
    assert column(tmp_path, "step") == [0, 1, 2]
    assert len(records(tmp_path, "rank", "rank")) == 1


@pytest.mark.parametrize(
    ("end", "exit_code", "state"),
    [
        ("", 0, "completed"),
        ("sys.exit(3)", 3, "failed"),
        ("sys.exit('no more memory')", 1, "failed"),
        ("raise ValueError('loss is NaN')", 1, "failed"),
        ("try: sys.exit(3)\nexcept SystemExit: pass\nfor batch in data: learn(batch)", 0, "completed"),
    ],
)
def test_the_end_of_the_program_ends_the_run(tmp_path: Path, end: str, exit_code: int, state: str) -> None:
    done = ran(tmp_path, f"{LOOP}for batch in data: learn(batch)\n{end}")
    assert done.returncode == exit_code
    assert records(tmp_path, "run", "state") == [("running",), (state,)]


CHILD = (
    "import subprocess\nsubprocess.run([sys.executable, '-c', CODE + 'for batch in data: learn(batch)'], check=True)\n"
)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (CHILD, ""),
        ("", CHILD),
        ("import os\nif os.fork() == 0:\n for batch in data: learn(batch)\n sys.exit(0)\nos.wait()\n", ""),
    ],
    ids=["a program before", "a program after", "a fork"],
)
def test_children_of_a_rank_are_no_ranks(tmp_path: Path, first: str, then: str) -> None:
    trained(tmp_path, f"CODE = {LOOP!r}\n{first}for batch in data: learn(batch)\n{then}")
    assert column(tmp_path, "step") == [0, 1, 2]
    assert len(records(tmp_path, "rank", "rank")) == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_are_no_ranks(tmp_path: Path, method: str) -> None:
    script = tmp_path / "train.py"
    code = f"for b in DataLoader(torch.randn(4, 4), num_workers=2, multiprocessing_context={method!r}): learn(b)"
    script.write_text(f"import torch\nif __name__ == '__main__':\n    exec({LOOP + code!r})\n")
    spool = tmp_path / "spool"
    environment = os.environ | RUN | RANK_0 | {"CROSSWIND_SPOOL": str(spool)} | injected({})
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert column(spool, "step") == [0, 1, 2, 3]
    assert len(records(spool, "rank", "rank")) == 1


def test_ranks_that_start_again_leave_what_was_recorded_and_are_a_run_beside_it(tmp_path: Path) -> None:
    for restart, world_size in enumerate((2, 1)):
        told = {"RANK": "0", "WORLD_SIZE": str(world_size), "TORCHELASTIC_RESTART_COUNT": str(restart)}
        trained(tmp_path, "for batch in data: learn(batch)", told)
    assert column(tmp_path, "step") == [0, 1, 2, 0, 1, 2]
    assert records(tmp_path, "rank", "run_id", "rank") == [("r1", 0), ("r1-restart1", 0)]
    assert [size for (size,) in records(tmp_path, "run", "world_size")] == [2, 2, 1, 1]


def test_an_announced_rank_that_only_evaluates_leaves_nothing(tmp_path: Path) -> None:
    trained(tmp_path, "with torch.no_grad():\n for batch in data: model(batch)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", [{"CROSSWIND_INJECT": "0"}, {"CROSSWIND_RUN_ID": ""}])
def test_it_can_be_turned_off(tmp_path: Path, told: Mapping[str, str]) -> None:
    done = ran(
        tmp_path, "import sys\nprint(any('_Finder' in repr(each) for each in sys.meta_path))", RANK_0 | dict(told)
    )
    assert done.stdout == ("False\n" if told.get("CROSSWIND_INJECT") else "True\n")
    assert (injected({"CROSSWIND_INJECT": "0"}), list(tmp_path.iterdir())) == ({}, [])


def test_the_wrapper_can_be_told_to_leave_programs_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crosswind.cli.main", "run", "--no-ingest", "--no-agent"]
    code = "import os; print(os.environ.get('CROSSWIND_INJECT'), os.environ.get('PYTHONPATH'))"
    inherited = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "CROSSWIND_INJECT")}
    environment = inherited | {"CROSSWIND_SPOOL": str(tmp_path)}

    def said(*options: str, **others: str) -> str:
        line = [*command, *options, "--", sys.executable, "-c", code]
        return subprocess.run(line, env=environment | others, capture_output=True, text=True, check=True).stdout

    assert said() == f"None {FOLDER}\n"
    assert said(PYTHONPATH="/theirs") == f"None {FOLDER}:/theirs\n"
    assert said("--no-inject") == "0 None\n"
    assert said(CROSSWIND_INJECT="0") == "0 None\n"


def test_a_launcher_is_left_alone(tmp_path: Path) -> None:
    launcher = tmp_path / "torchrun"
    launcher.write_text(
        "import os, sys\nprint([type(each).__name__ for each in sys.meta_path], os.environ.get('CROSSWIND_INJECTED'))"
    )
    environment = os.environ | RUN | RANK_0 | injected({})
    done = subprocess.run([sys.executable, launcher], env=environment, capture_output=True, text=True, check=True)
    assert "_Finder" not in done.stdout
    assert done.stdout.endswith("None\n")


def test_the_hidden_sitecustomize_runs_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nTHEIRS = 1\nsys.path.append('/from/theirs')\n")
    path = f"{injected({})['PYTHONPATH']}{os.pathsep}{tmp_path}"
    code = "import sys, sitecustomize; print(sitecustomize.THEIRS, sys.path[-1], *sys.path)"
    done = ran(tmp_path, code, RANK_0 | {"PYTHONPATH": path})
    assert (done.stdout.split()[:2], done.stderr) == (["1", "/from/theirs"], "")
    assert str(FOLDER) not in done.stdout


def test_an_error_of_the_hidden_sitecustomize_is_said_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('theirs')\n")
    path = f"{injected({})['PYTHONPATH']}{os.pathsep}{tmp_path}"
    done = ran(tmp_path, "print('on')", RANK_0 | {"PYTHONPATH": path})
    alone = ran(tmp_path, "print('on')", RANK_0 | {"PYTHONPATH": str(tmp_path)})
    assert (done.stdout, done.stderr) == (alone.stdout, alone.stderr)
    assert "ValueError: theirs" in done.stderr


def test_a_rank_without_torch_costs_no_import_of_ours(tmp_path: Path) -> None:
    done = ran(tmp_path, "import json, sys\nprint(*(name for name in sys.modules if 'crosswind' in name))")
    assert (done.stdout, done.stderr) == ("\n", "")


def test_torch_looks_as_it_does_without_us(tmp_path: Path) -> None:
    code = (
        "import inspect, sys, torch\nprint(type(torch.__loader__).__name__, torch.__spec__.loader is torch.__loader__)"
    )
    done = ran(tmp_path, f"{code}\nprint(len(inspect.getsource(torch)) > 1000)")
    assert (done.stdout, done.stderr) == ("SourceFileLoader True\nTrue\n", "")


def test_an_import_of_torch_that_fails_fails_as_ever(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no driver')")
    path = f"{injected({})['PYTHONPATH']}{os.pathsep}{tmp_path}"
    code = "try:\n import torch\nexcept ImportError as error:\n print(error)"
    done = ran(tmp_path, code, RANK_0 | {"PYTHONPATH": path})
    assert (done.stdout, done.stderr) == ("no driver\n", "")


def test_a_torch_that_is_another_is_said_and_the_program_goes_on(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("print('old torch')")
    path = f"{injected({})['PYTHONPATH']}{os.pathsep}{tmp_path}"
    done = ran(tmp_path, "import torch; print('on')", RANK_0 | {"PYTHONPATH": path})
    assert done.stdout == "old torch\non\n"
    assert done.stderr.startswith("crosswind does not record this process: ")


def test_our_package_is_found_where_the_environment_has_none(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    path = f"{injected({})['PYTHONPATH']}{os.pathsep}{tmp_path}"
    code = "import sys, torch\nprint(sys.modules['crosswind'].__file__, *sys.path)"
    done = ran(tmp_path, code, RANK_0 | {"PYTHONPATH": path}, "-S")  # -S: no site-packages, and no sitecustomize
    assert done.returncode == 1
    done = ran(
        tmp_path,
        f"import sys; sys.path[:] = [each for each in sys.path if 'src' not in each]\n{code}",
        RANK_0 | {"PYTHONPATH": path},
    )
    assert done.stdout.split()[0] == str(FOLDER.parents[2] / "__init__.py")


def test_a_spool_that_takes_nothing_leaves_the_program_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = ran(tmp_path / "file" / "spool", f"{LOOP}for batch in data: learn(batch)\nprint('trained')")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "crosswind does not record this run" in done.stderr
