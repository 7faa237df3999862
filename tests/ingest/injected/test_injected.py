"""Ranks of programs that know nothing of us, recorded under `crosswind run`."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.conftest import free_port
from tests.ingest.torch_forks import TorchForks, torch_forks
from tests.needs import program

from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.steps import PHASES
from crosswind.ingest.injected import FOLDER, injected
from crosswind.ingest.injected.on_path.sitecustomize import RANK_VARIABLES
from crosswind.ingest.probe import place
from crosswind.ingest.spool.spool import RecordFrame, RowsFrame, read_frames, sealed_segments

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
TRAIN = "for batch in data: learn(batch)\n"
IS_HOOKED = "import sys\nprint(any('_Finder' in repr(each) for each in sys.meta_path))\n"


def words(spool: Path, variables: Mapping[str, str] = RANK_0) -> dict[str, str]:
    return os.environ | RUN | {"CROSSWIND_SPOOL": str(spool)} | injected({}) | dict(variables)


def ran(
    spool: Path, code: str, variables: Mapping[str, str] = RANK_0, *options: str
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, env=words(spool, variables), capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def forks() -> Iterator[TorchForks]:
    with torch_forks() as started:
        yield started


def trained(forks: TorchForks, spool: Path, code: str, variables: Mapping[str, str] = RANK_0) -> None:
    done = forks.run(LOOP + code, words(spool, variables))
    assert (done.returncode, done.stderr) == (0, "")


def column(spool: Path, name: str, metric_set: str = "step") -> list[Scalar]:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    row_frames = [frame for frame in frames if isinstance(frame, RowsFrame) and frame.metric_set.name == metric_set]
    return [value for frame in row_frames for value in frame.columns[name]]


def longest(spool: Path) -> Scalar:
    return max(column(spool, "duration_seconds"))  # type: ignore[type-var]


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
distributed.barrier()
distributed.destroy_process_group()
"""


FROM_OPEN_MPI = """
import os
os.environ |= {"RANK": os.environ["OMPI_COMM_WORLD_RANK"], "WORLD_SIZE": os.environ["OMPI_COMM_WORLD_SIZE"]}
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("launcher", "begin"),
    [
        ((sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"), ""),
        (("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable), FROM_OPEN_MPI),
    ],
    ids=["torchrun", "mpirun"],
)
def test_an_unchanged_program_is_recorded_with_all_its_steps_and_collectives(
    tmp_path: Path, launcher: tuple[str, ...], begin: str
) -> None:
    program(launcher[0], "openmpi-bin")
    (tmp_path / "train.py").write_text(begin + DATA_PARALLEL)
    spool = tmp_path / "spool"
    words = [*launcher, str(tmp_path / "train.py")]
    command = [sys.executable, "-m", "crosswind.cli.main", "run", "--no-ingest", "--no-agent", "--", *words]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environment = os.environ | meeting | {"CROSSWIND_SPOOL": str(spool), "OMP_NUM_THREADS": "1"}
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
    ("variables", "rank"),
    [
        ({"RANK": "3", "WORLD_SIZE": "4"}, 3),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, 1),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77", "SLURM_LOCALID": "1"}, 5),
        ({}, 0),
    ],
    ids=["torchrun", "Open MPI", "srun", "alone"],
)
def test_ranks_of_every_launcher_are_recorded(
    forks: TorchForks, tmp_path: Path, variables: Mapping[str, str], rank: int
) -> None:
    trained(forks, tmp_path, TRAIN, variables)
    assert column(tmp_path, "step") == [0, 1, 2]
    assert set(column(tmp_path, "rank")) == {rank}
    assert records(tmp_path, "rank", "run_id", "rank") == [("r1", rank)]


def test_the_hook_knows_the_rank_variables_that_the_probe_knows() -> None:
    assert RANK_VARIABLES == place.RANK_VARIABLES


ALONE = f"""
import inspect, subprocess, sys
from importlib.util import find_spec
CHILD = [sys.executable, "-c", {IS_HOOKED!r}]
subprocess.run(CHILD, check=True)
print(find_spec("torch").name, "torch" in sys.modules)
{LOOP}
{TRAIN}
print(type(torch.__loader__).__name__, torch.__spec__.loader is torch.__loader__, len(inspect.getsource(torch)) > 1000)
{IS_HOOKED}
subprocess.run(CHILD, check=True)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the spool of a program without a launcher, and what it printed."""
    spool = tmp_path_factory.mktemp("alone")
    done = ran(spool, ALONE, {}, "-u")
    assert (done.returncode, done.stderr) == (0, "")
    return spool, done.stdout.splitlines()


def test_a_program_that_asks_whether_torch_is_there_before_it_imports_it_is_recorded(
    alone: tuple[Path, list[str]],
) -> None:
    spool, said = alone
    assert said[1] == "torch False"
    assert column(spool, "step") == [0, 1, 2]
    assert records(spool, "rank", "run_id", "rank") == [("r1", 0)]


def test_torch_looks_as_it_does_without_us(alone: tuple[Path, list[str]]) -> None:
    assert alone[1][2:4] == ["SourceFileLoader True True", "False"]


def test_what_a_rank_starts_is_no_rank_and_without_a_launcher_it_is_one_once_it_trains(
    tmp_path: Path, alone: tuple[Path, list[str]]
) -> None:
    assert (alone[1][0], alone[1][4]) == ("True", "False")
    announced = ran(tmp_path, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {IS_HOOKED!r}])")
    assert (announced.stdout, announced.stderr) == ("False\n", "")


def test_a_fork_of_a_rank_is_no_rank(forks: TorchForks, tmp_path: Path) -> None:
    trained(forks, tmp_path, f"import os\nif os.fork() == 0:\n {TRAIN} sys.exit(0)\nos.wait()\n{TRAIN}")
    assert column(tmp_path, "step") == [0, 1, 2]
    assert len(records(tmp_path, "rank", "rank")) == 1


FORKING = """
import multiprocessing
from torch import distributed
def train(rank):
    {begin}
    for batch in data:
        learn(batch)
    {end}
context = multiprocessing.get_context("fork")
ranks = [context.Process(target=train, args=(rank,)) for rank in range(2)]
for rank in ranks: rank.start()
for rank in ranks: rank.join()
"""
JOINED = "distributed.init_process_group('gloo', init_method='file://{file}', rank=rank, world_size=2)"
FAILING = "distributed.barrier(); assert rank == 0, 'the weights are gone'"


def test_forks_that_join_a_process_group_are_its_ranks(forks: TorchForks, tmp_path: Path) -> None:
    code = FORKING.format(begin=JOINED.format(file=tmp_path / "meeting"), end="")
    trained(forks, tmp_path / "spool", code, variables={})
    assert sorted(records(tmp_path / "spool", "rank", "rank")) == [(0,), (1,)]
    assert sorted(column(tmp_path / "spool", "step")) == [0, 0, 1, 1, 2, 2]  # type: ignore[type-var]
    assert ("completed", 2) in records(tmp_path / "spool", "run", "state", "world_size")


def test_a_fork_that_fails_leaves_its_error(forks: TorchForks, tmp_path: Path) -> None:
    code = FORKING.format(begin=JOINED.format(file=tmp_path / "meeting"), end=FAILING)
    forks.run(LOOP + code, words(tmp_path / "spool", {}))
    [tags] = [tags for state, tags in records(tmp_path / "spool", "run", "state", "tags") if state == "failed"]
    assert "AssertionError: the weights are gone" in str(tags)


def test_forks_that_nothing_numbers_say_what_they_need(forks: TorchForks, tmp_path: Path) -> None:
    done = forks.run(LOOP + FORKING.format(begin="", end=""), words(tmp_path, {}))
    assert done.stderr.count("call torch.distributed.init_process_group in it, or start the ranks by torchrun") == 2
    assert records(tmp_path, "rank", "rank") == []


def test_what_comes_after_a_step_is_no_input_and_what_comes_after_an_epoch_is_in_no_step(
    forks: TorchForks, tmp_path: Path
) -> None:
    trained(forks, tmp_path, "for _ in 'ab':\n for batch in data: learn(batch); time.sleep(0.05)\n time.sleep(1)")
    assert column(tmp_path, "step") == list(range(6))
    others = column(tmp_path, "other_seconds")
    assert [other > 45_000_000 for other in others] == [False, True, True, False, True, True]  # type: ignore[operator]
    assert longest(tmp_path) < 900_000_000  # type: ignore[operator]


def test_time_in_the_loader_is_input_with_the_workers_start(forks: TorchForks, tmp_path: Path) -> None:
    slow = """
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 3
    def __getitem__(self, i): time.sleep(0.1); return torch.randn(4)
for batch in DataLoader(Slow()): learn(batch)
"""
    trained(forks, tmp_path, slow)
    assert min(column(tmp_path, "input_seconds")) >= 100_000_000  # type: ignore[type-var, operator]


GATHERED = "model(batch).sum().backward(); i % 3 != {last} or optimizer.step()"


def test_a_step_is_the_optimizers_whatever_batches_it_gathers(forks: TorchForks, tmp_path: Path) -> None:
    trained(forks, tmp_path, f"for _ in 'ab':\n for i, batch in enumerate(data): {GATHERED.format(last=2)}")
    assert column(tmp_path, "step") == [0, 1]


def test_batches_that_are_left_over_at_the_end_of_the_data_are_in_no_step(forks: TorchForks, tmp_path: Path) -> None:
    epoch = f" for i, batch in enumerate(data): {GATHERED.format(last=1)}\n time.sleep(1)\n"
    trained(forks, tmp_path, f"for _ in 'abc':\n{epoch}")
    assert column(tmp_path, "step") == [0, 1, 2]
    assert longest(tmp_path) < 900_000_000  # type: ignore[operator]


def test_of_two_optimizers_the_first_one_counts(forks: TorchForks, tmp_path: Path) -> None:
    other = "other = torch.optim.Adam(model.parameters())\nfor batch in data: learn(batch); other.step(); other.step()"
    trained(forks, tmp_path, other)
    assert column(tmp_path, "step") == [0, 1, 2]


def test_an_evaluation_before_the_training_begins_no_step(forks: TorchForks, tmp_path: Path) -> None:
    trained(forks, tmp_path, f"with torch.no_grad():\n for batch in data: model(batch); time.sleep(0.4)\n{TRAIN}")
    assert column(tmp_path, "step") == [0, 1, 2]
    assert longest(tmp_path) < 900_000_000  # type: ignore[operator]


def test_a_single_process_is_timed_by_the_device_of_its_parameters(forks: TorchForks, tmp_path: Path) -> None:
    """One without events here: what is said shows that it was to be followed."""
    there = "model.to('meta'); optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
    train = "for batch in data: model(batch.to('meta')).sum().backward(); optimizer.step()\n"
    done = forks.run(LOOP + there + train, words(tmp_path))
    assert column(tmp_path, "step") == [0, 1, 2]
    [line] = done.stderr.splitlines()
    assert line.endswith("this program: watch: what is on 'meta' is not timed; expected cpu or cuda")


def test_without_a_loader_steps_are_counted_from_the_first_steps_end(forks: TorchForks, tmp_path: Path) -> None:
    trained(forks, tmp_path, "for _ in range(5): learn(torch.randn(2, 4)); time.sleep(0.02)")
    assert column(tmp_path, "step") == [0, 1, 2, 3]
    assert max(column(tmp_path, "other_seconds")) == 0  # type: ignore[type-var]
    assert min(column(tmp_path, "compute_seconds")) > 19_000_000  # type: ignore[type-var, operator]


AHEAD = """
def ahead(source):
    source = iter(source)
    batch = next(source)
    for following in source:
        yield batch
        batch = following
    yield batch
"""


@pytest.mark.parametrize(
    ("body", "steps"), [("learn(batch)", 6), ("model(batch).sum().backward(); i == 1 or optimizer.step()", 4)]
)
def test_a_loop_that_fetches_one_batch_ahead_loses_no_step_and_has_none_between_epochs(
    forks: TorchForks, tmp_path: Path, body: str, steps: int
) -> None:
    trained(forks, tmp_path, f"{AHEAD}for _ in 'ab':\n for i, batch in enumerate(ahead(data)): {body}\n time.sleep(1)")
    assert column(tmp_path, "step") == list(range(steps))
    assert longest(tmp_path) < 900_000_000  # type: ignore[operator]


OWN = "import crosswind\nwith crosswind.run(workload='own') as run:\n for batch in run.steps(data): learn(batch)"


@pytest.mark.parametrize("before", ["", "next(iter(data))\n", "torch.randn(2)\n"])
def test_a_script_that_records_itself_is_recorded_once(forks: TorchForks, tmp_path: Path, before: str) -> None:
    trained(forks, tmp_path, f"{before}{OWN}\n{TRAIN}")
    assert column(tmp_path, "step") == [0, 1, 2]
    runs = set(records(tmp_path, "run", "run_id"))
    assert runs == {("r1",)}
    assert ("own", "completed") in records(tmp_path, "run", "workload", "state")


@pytest.mark.thorough
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
        (f"try: sys.exit(3)\nexcept SystemExit: pass\n{TRAIN}", 0, "completed"),
    ],
)
def test_the_end_of_the_program_ends_the_run(
    forks: TorchForks, tmp_path: Path, end: str, exit_code: int, state: str
) -> None:
    done = forks.run(f"{LOOP}{TRAIN}{end}", words(tmp_path))
    assert done.returncode == exit_code
    assert records(tmp_path, "run", "state") == [("running",), (state,)]


def test_forked_workers_of_a_loader_are_no_ranks(forks: TorchForks, tmp_path: Path) -> None:
    workers = "num_workers=2, multiprocessing_context='fork'"
    trained(forks, tmp_path, f"for batch in DataLoader(torch.randn(4, 4), {workers}): learn(batch)")
    assert column(tmp_path, "step") == [0, 1, 2, 3]
    assert len(records(tmp_path, "rank", "rank")) == 1


@pytest.mark.thorough
def test_spawned_workers_of_a_loader_are_no_ranks(tmp_path: Path) -> None:
    script, spool = tmp_path / "train.py", tmp_path / "spool"
    workers = "num_workers=1, multiprocessing_context='spawn'"
    code = f"{LOOP}for batch in DataLoader(torch.randn(4, 4), {workers}): learn(batch)"
    script.write_text(f"import torch\nif __name__ == '__main__':\n    exec({code!r})\n")
    done = subprocess.run([sys.executable, script], env=words(spool), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert column(spool, "step") == [0, 1, 2, 3]
    assert len(records(spool, "rank", "rank")) == 1


def test_ranks_that_start_again_leave_what_was_recorded_and_are_a_run_next_to_it(
    forks: TorchForks, tmp_path: Path
) -> None:
    for restart, world_size in enumerate((2, 1)):
        variables = {"RANK": "0", "WORLD_SIZE": str(world_size), "TORCHELASTIC_RESTART_COUNT": str(restart)}
        trained(forks, tmp_path, TRAIN, variables)
    assert column(tmp_path, "step") == [0, 1, 2, 0, 1, 2]
    assert records(tmp_path, "rank", "run_id", "rank") == [("r1", 0), ("r1-restart1", 0)]
    assert [size for (size,) in records(tmp_path, "run", "world_size")] == [2, 2, 1, 1]


def test_an_announced_rank_that_only_evaluates_leaves_nothing(forks: TorchForks, tmp_path: Path) -> None:
    trained(forks, tmp_path, "with torch.no_grad():\n for batch in data: model(batch)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "is_on"), [({}, True), ({"CROSSWIND_INJECT": "0"}, False), ({"CROSSWIND_RUN_ID": ""}, False)]
)
def test_it_is_off_where_that_was_said_and_where_no_run_was_given(
    tmp_path: Path, variables: Mapping[str, str], is_on: bool
) -> None:
    assert ran(tmp_path, IS_HOOKED, RANK_0 | variables).stdout == f"{is_on}\n"
    assert injected({"CROSSWIND_INJECT": "0"}) == {}
    assert [path.name for path in tmp_path.iterdir()] == (["r1.notes"] if is_on else [])


def test_an_option_makes_the_wrapper_leave_programs_alone(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("line", "is_rank"),
    [
        (("torchrun", "train.py"), False),
        (("-B", "torchrun"), False),
        (("-m", "horovodrun", "-np", "2"), False),
        (("train.py", "--strategy", "deepspeed"), True),
        (("-m", "train", "torchrun"), True),
        (("-c", IS_HOOKED, "accelerate"), True),
    ],
)
def test_a_launcher_is_left_alone_and_a_program_with_its_name_in_an_option_is_none(
    tmp_path: Path, line: Sequence[str], is_rank: bool
) -> None:
    for name in ("torchrun", "horovodrun.py", "train.py"):
        (tmp_path / name).write_text(IS_HOOKED)
    command = [sys.executable, *line]
    done = subprocess.run(command, env=words(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{is_rank}\n", "")


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


def test_with_another_hook_on_torch_ours_has_its_turn_once(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")  # in which there is nothing to watch: that is said
    asks_again = """
import importlib.util, sys
class Theirs:
    is_asking = False
    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.is_asking: return None
        self.is_asking = True
        return importlib.util.find_spec(name)
sys.meta_path.insert(0, Theirs())
import torch
"""
    path = f"{injected({})['PYTHONPATH']}{os.pathsep}{tmp_path}"
    done = ran(tmp_path, asks_again, RANK_0 | {"PYTHONPATH": path})
    assert (done.returncode, done.stderr.count("crosswind does not record this process: ")) == (0, 1)


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


def test_a_spool_that_takes_nothing_leaves_the_program_alone(forks: TorchForks, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = forks.run(f"{LOOP}{TRAIN}print('trained')", words(tmp_path / "file" / "spool"))
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "crosswind does not record this run" in done.stderr
