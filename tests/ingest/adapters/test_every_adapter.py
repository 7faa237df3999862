"""What every kind of training that PyTorch itself has is promised, held to real training."""

import subprocess
import sys

import pytest
from tests.ingest.adapters.conftest import Train
from tests.ingest.adapters.trained import Trained

PROGRAMS = {
    "FSDP2": ("fsdp2.py", 2),
    "tensor parallel": ("tensor_parallel.py", 2),
    "FSDP2 x tensor parallel": ("hybrid.py", 4),
    "GPipe": ("pipeline.py gpipe", 2),
    "1F1B": ("pipeline.py 1f1b", 2),
    "synchronous parameter server": ("parameter_server.py synchronous", 2),
    "asynchronous parameter server": ("parameter_server.py asynchronous", 2),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def training(request: pytest.FixtureRequest, train: Train) -> Trained:
    command, ranks = PROGRAMS[request.param]
    return train(*command.split(), ranks=ranks)


def test_every_rank_has_every_step_and_its_phases_sum_to_it(training: Trained) -> None:
    assert training.is_complete


def test_ranks_of_a_group_came_to_the_same_collectives_in_the_same_order(training: Trained) -> None:
    assert training.are_matched


def test_the_weights_are_those_of_a_training_without_the_probe(training: Trained) -> None:
    assert training.is_undisturbed


def test_pytorch_is_after_the_run_what_it_was_before(training: Trained) -> None:
    assert training.is_restored


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
