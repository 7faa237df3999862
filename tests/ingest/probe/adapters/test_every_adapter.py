"""Promises of every adapter, held to real training."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.ingest.probe.adapters import frameworks
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.launched import THIS_PYTHON, Launch, by_hand, mpirun, torchrun
from tests.ingest.probe.adapters.trained import Trained
from tests.needs import program

from crosswind.ingest.probe.adapters import ADAPTERS


@dataclass(frozen=True)
class Training:
    """A program and its arguments, and who starts its ranks, else forked; `needs` is a package of `make frameworks`."""

    command: str
    ranks: int = 2
    launch: Launch | None = None
    needs: str | None = None


TRAININGS: Mapping[str, Sequence[Training]] = {
    "ddp": [Training("data_parallel.py")],
    "fsdp": [Training("fsdp2.py"), Training("hybrid.py", ranks=4)],
    "pipeline": [Training("pipeline.py gpipe"), Training("pipeline.py 1f1b")],
    "module": [Training("tensor_parallel.py")],
    "deepspeed": [Training("deepspeed_zero.py 2", launch=torchrun, needs="deepspeed")],
    "parameter_server": [Training("parameter_server.py synchronous"), Training("parameter_server.py asynchronous")],
    "mpi": [Training("mpi.py", launch=mpirun)],
    "jax": [Training("jax_gloo.py", launch=by_hand, needs="jax")],
    "spark": [Training("spark_barrier.py", ranks=1, launch=by_hand, needs="pyspark")],
    "tensorflow": [Training("tensorflow_mirrored.py", launch=by_hand, needs="tensorflow")],
}
STAND_INS = {"horovod"}  # it does not build against today's PyTorch
ALL = [training for trainings in TRAININGS.values() for training in trainings]


def done(training: Training, train: Train) -> Trained:
    if training.needs:
        frameworks.require(training.needs)
    if training.launch is mpirun:
        program("mpirun", "openmpi-bin")
    python = frameworks.PYTHON if training.needs else THIS_PYTHON
    return train(*training.command.split(), ranks=training.ranks, launch=training.launch, python=python)


FURTHER = {
    "hybrid.py",
    "parameter_server.py asynchronous",
    "pipeline.py 1f1b",
}  # of an adapter that another training shows as well


def marked(trainings: Sequence[Training]) -> list[Any]:
    thorough = pytest.mark.thorough
    return [
        pytest.param(candidate, id=candidate.command, marks=[thorough] if candidate.command in FURTHER else [])
        for candidate in trainings
    ]


@pytest.fixture(scope="module", params=marked(ALL))
def training(request: pytest.FixtureRequest, train: Train) -> Trained:
    return done(request.param, train)


def test_no_adapter_is_left_out() -> None:
    names = {str(getattr(adapter, "__name__", adapter)).rpartition(".")[2] for adapter in ADAPTERS}
    assert names == TRAININGS.keys() | STAND_INS


def test_every_rank_has_every_step_and_its_phases_sum_to_it(training: Trained) -> None:
    assert training.is_complete


def test_ranks_of_a_group_came_to_the_same_collectives_in_the_same_order(training: Trained) -> None:
    assert not training.collectives.empty
    assert training.are_matched


def test_the_weights_are_those_of_a_training_without_the_probe(training: Trained) -> None:
    assert training.is_undisturbed


@pytest.mark.parametrize("of_pytorch", marked([candidate for candidate in ALL if candidate.launch in {None, torchrun}]))
def test_pytorch_is_after_the_run_what_it_was_before(of_pytorch: Training, train: Train) -> None:
    assert done(of_pytorch, train).is_restored


def test_asking_whose_a_thing_is_imports_no_framework() -> None:
    program = "; ".join(
        [
            "import sys",
            "from crosswind.ingest.probe.adapters import ADAPTERS",
            "assert not any(adapter.matches(thing) for adapter in ADAPTERS for thing in (None, 'x', object()))",
            "print({'torch', 'numpy', 'jax', 'deepspeed', 'mpi4py', 'tensorflow'} & set(sys.modules))",
        ]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
