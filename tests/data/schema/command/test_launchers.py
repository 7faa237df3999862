import shlex

import pytest

from crosswind.data.schema.command.launchers import started_by


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        ("./solver -n 4", "solver", "-n 4"),
        ("python -u train.py --lr 1", "train", "--lr 1"),
        ("torchrun --standalone --nproc-per-node 8 train.py --lr 1", "train", "--lr 1"),
        ("torchrun --nproc_per_node=2 -m pkg.train --lr 1", "train", "--lr 1"),
        ("/usr/bin/python3.11 -X dev -m torch.distributed.run --nnodes 2 train.py a=1", "train", "a=1"),
        ("srun -N 2 -u --cpu-bind=cores python train.py --lr 1", "train", "--lr 1"),
        ("mpirun --allow-run-as-root --mca btl tcp,self -x PATH -n 4 ./solver in.lj", "solver", "in.lj"),
        ("accelerate launch --multi_gpu --num_processes 2 train.py --lr 1", "train", "--lr 1"),
        ("deepspeed --num_gpus 2 train.py --deepspeed ds.json", "train", "--deepspeed ds.json"),
        ("env A=1 B=2 numactl -N 0 taskset 0x3 python train.py x", "train", "x"),
        ("singularity exec --nv image.sif python train.py x", "train", "x"),
        ("uv run train.py x", "train", "x"),
        ("bash job.sh x", "job", "x"),
        ("timeout -k 5 60 nice -n 5 ./a.out x", "a.out", "x"),
        ("sh -c 'exit 3'", "sh", ""),
        ("python -c 'print()' x", "python", "x"),
        ("torchrun", "torchrun", ""),
        ("mpirun -n", "mpirun", "-n"),
    ],
)
def test_the_program_is_read_past_its_launchers(command: str, name: str, words: str) -> None:
    started = started_by(shlex.split(command))
    assert (started.name, started.words) == (name, tuple(words.split()))
