"""A warm worker: imports torch once, then carries out orders to train, run after run.

Started by the lab as `python -m crosswind.ingest.lab.workers.worker CONDITIONS SCRATCH`; orders come by standard input,
answers go to standard output. A run that fails ends the process: the lab starts another.
"""

import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import crosswind
from crosswind.data.schema.paths import spool_directory
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.workers.order import BEGUN, ENDED, MARK, READY, STEPS_A_CHECKPOINT, Order, reply
from crosswind.ingest.lab.workloads import WORKLOADS
from crosswind.ingest.lab.workloads.workload import Workload
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.spool.registration import announce, directories

TIMEOUT = timedelta(seconds=60)  # longer than any injected pause
IDLE = "-"  # in place of a run's id
Batch = TypeVar("Batch")


class Trainer:
    """Trains one order after the other; workloads keep their data from run to run."""

    def __init__(self, conditions: Conditions, scratch: Path, answers: int) -> None:
        self._conditions = conditions
        self._scratch = scratch
        self._answers = answers
        self._workloads: dict[str, Workload] = {}

    def reply_to_lab(self, event: str, **facts: object) -> None:
        """Send a reply to the lab."""
        os.write(self._answers, reply(event, **facts))

    def carry_out(self, order: Order) -> None:
        """Train as ordered, in a process group of its own."""
        os.environ.update(order.environment())
        _pin(order.cores)
        torch.set_num_threads(order.threads)
        torch.manual_seed(order.seed)
        where = f"tcp://{order.address}:{order.port}"
        distributed.init_process_group(
            "gloo", init_method=where, rank=order.rank, world_size=order.world_size, timeout=TIMEOUT
        )
        try:
            loss, ended_ns = self._train(order)
        finally:
            announce_idle()
            distributed.destroy_process_group()
        self.reply_to_lab(ENDED, ns=ended_ns, loss=loss)

    def _train(self, order: Order) -> tuple[float, int]:
        if order.workload not in self._workloads:
            self._workloads[order.workload] = WORKLOADS[order.workload]()
        workload = self._workloads[order.workload]
        model = DistributedDataParallel(workload.model(), bucket_cap_mb=order.bucket_mb)
        optimizer = torch.optim.AdamW(model.parameters(), lr=workload.learning_rate)
        loss = torch.zeros(())
        spool = None if order.is_recorded else self._scratch / "unrecorded"
        with crosswind.run(workload=order.workload, config=order.configuration(), spool=spool) as run:
            run.watch(model)
            self.reply_to_lab(BEGUN, ns=time.time_ns())
            batches = self._delayed(workload.batches(order.batch, order.seed + 1000 + order.rank), order)
            for step, (inputs, targets) in enumerate(run.steps(batches)):
                if step in order.marks and order.rank == 0:
                    self.reply_to_lab(MARK, step=step)
                optimizer.zero_grad()
                loss = workload.loss(model, inputs, targets)
                compute_for(self._conditions.get(order.rank, "slow_rank_ms"))
                loss.backward()
                optimizer.step()
                run.record(loss=loss.item())
                if (step + 1) % STEPS_A_CHECKPOINT == 0:
                    with run.phase("checkpoint"):
                        self._save(model, order)
            ended_ns = time.time_ns()
        return float(loss.item()), ended_ns

    def _delayed(self, batches: Iterator[Batch], order: Order) -> Iterator[Batch]:
        for _ in range(order.steps):
            delay = self._conditions.get(order.rank, "slow_input_ms")
            if delay > 0:
                time.sleep(delay / 1000)
            yield next(batches)

    def _save(self, model: nn.Module, order: Order) -> None:
        """Write this rank's own file and wait for the disk, as checkpoints that survive a power failure need."""
        delay = self._conditions.get(order.rank, "late_checkpoint_ms")
        if delay > 0:
            time.sleep(delay / 1000)
        path = self._scratch / f"checkpoint-{os.getpid()}.pt"
        with path.with_suffix(".part").open("wb") as file:
            torch.save(model.state_dict(), file)
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".part").rename(path)


def announce_idle() -> None:
    """Keep the agent watching between runs: it looks for ranks only every other second, and would miss a start."""
    for directory in directories(spool_directory()):
        announce(directory, run_id=IDLE, rank=0, node=node_name())


def compute_for(milliseconds: float) -> None:
    """Compute for this long: work that other ranks do not have."""
    end = time.perf_counter() + milliseconds / 1000
    matrix = torch.ones(64, 64)
    while time.perf_counter() < end:
        matrix = (matrix @ matrix).clamp(max=1.0)


def _pin(cores: tuple[int, ...]) -> None:
    """Keep every thread of this process on these cores, including those of earlier runs."""
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - only names are needed
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:  # it has just ended
            continue


def main() -> None:
    """Carry out orders until there are no more."""
    conditions, scratch = sys.argv[1:]
    answers = os.dup(1)
    os.dup2(2, 1)  # output of libraries is no reply
    trainer = Trainer(Conditions.attach(Path(conditions)), Path(scratch), answers)
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])  # makes its imports while there is time
    announce_idle()
    trainer.reply_to_lab(READY, pid=os.getpid())
    for line in sys.stdin:
        trainer.carry_out(Order.read(line))


if __name__ == "__main__":
    main()
