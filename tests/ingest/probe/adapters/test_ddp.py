"""The order of arrival at DDP's gradient reductions, in real training of two ranks."""

import copy
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.ingest.probe.adapters.launched import FORKED, LONGEST_SECONDS
from tests.ingest.spooled import rows
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import crosswind
from crosswind.data.schema.steps import PHASES
from crosswind.ingest.probe.adapters import ddp

PROGRAM = Path(__file__).parent / "programs" / "late_backward.py"
STEPS, LATE, DELAY_MS = 40, 1, 200


def trained(spool: Path, delay_ms: float, steps: int, **environment: str) -> str:
    command = [sys.executable, str(FORKED), "2", str(PROGRAM), str(LATE), str(delay_ms), str(steps)]
    names = os.environ | {"CROSSWIND_SPOOL": str(spool), "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run(command, env=names, capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a training in which rank 1 is late by 200 ms in the middle of every backward pass."""
    folder = tmp_path_factory.mktemp("late")
    trained(folder, DELAY_MS, STEPS)
    return folder


def test_step_times_tell_nothing(spool: Path) -> None:
    medians = rows(spool, "step").groupby("rank")["duration_seconds"].median()
    assert medians[LATE] == pytest.approx(medians[1 - LATE], rel=0.1)


def test_the_rank_that_is_late_in_backward_is_last_to_arrive(spool: Path) -> None:
    arrivals = rows(spool, "collective").query("step > 0")
    last = arrivals.pivot_table(index=["step", "sequence"], columns="rank", values="ts_ns").groupby("step").last()
    assert len(last) == STEPS - 1
    assert (last[LATE] - last[1 - LATE] > 0.9e6 * DELAY_MS).mean() >= 0.95


def test_its_victim_waits_and_it_computes(spool: Path) -> None:
    steps = rows(spool, "step").query("step > 0")
    parts = steps[[f"{phase}_seconds" for phase in PHASES]]
    assert (parts.sum(axis=1) == steps["duration_seconds"]).all()
    comm = steps.groupby("rank")["comm_seconds"].median()
    assert comm[1 - LATE] > 0.9e6 * DELAY_MS
    assert comm[LATE] < 0.2e6 * DELAY_MS


def test_both_ranks_saw_the_reduction_of_all_gradients(spool: Path) -> None:
    columns = ["step", "sequence", "size_bytes", "operation", "group"]
    first, second = (
        rows(spool, "collective").query(f"rank == {rank}").sort_values(columns)[columns].to_numpy().tolist()
        for rank in (0, 1)
    )
    assert first == second
    assert first == [[step, 0, 4 * 4 * (64 * 64 + 64), "all_reduce", "data_parallel"] for step in range(STEPS)]


def test_it_ends_on_all_ranks_at_once(spool: Path) -> None:
    collectives = (
        rows(spool, "collective").query("step > 0").assign(end=lambda frame: frame["ts_ns"] + frame["duration_seconds"])
    )
    ends = collectives.pivot_table(index="step", columns="rank", values="end")
    assert (ends[0] - ends[1]).abs().median() < 20e6


def test_show_names_the_rank_that_others_waited_for(spool: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(spool, tmp_path / "copied")
    verb = partial(
        subprocess.run, check=True, capture_output=True, text=True, env=os.environ | {"CROSSWIND_HOME": str(tmp_path)}
    )
    program = (sys.executable, "-m", "crosswind.cli.main")
    verb((*program, "ingest", str(copy)))
    said = verb((*program, "show")).stdout
    assert f"rank {LATE} was last to arrive in " in said
    answer = json.loads(verb((*program, "show", "--json")).stdout)
    first = answer["latecomers"][0]
    assert (first["rank"], first["share"] >= 0.95, first["late_seconds"] > 0.9e-3 * DELAY_MS) == (LATE, True, True)


def test_recorded_values_stand_by_step(spool: Path) -> None:
    losses = rows(spool, "progress").query("name == 'loss' and rank == 0")
    assert losses["step"].tolist() == list(range(STEPS))
    assert losses["value"].is_monotonic_decreasing


@pytest.mark.thorough
def test_watched_or_not_training_is_the_same(tmp_path: Path) -> None:
    assert trained(tmp_path / "a", 0, 5) == trained(tmp_path / "b", 0, 5, CROSSWIND_SPOOL="/dev/null/nowhere")
    assert set(rows(tmp_path / "a", "collective")["step"]) == set(range(5))


@pytest.fixture
def lone_model(tmp_path: Path) -> Iterator[DistributedDataParallel]:
    """A model of one rank, which reduces with nobody."""
    store = distributed.FileStore(str(tmp_path / "rendezvous"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield DistributedDataParallel(nn.Linear(8, 1))
    distributed.destroy_process_group()


def test_only_passes_that_reduce_are_communication(lone_model: DistributedDataParallel, tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path) as run:
        run.watch(lone_model)
        for number in run.steps(range(6)):
            with lone_model.no_sync() if number % 2 == 0 else nullcontext():
                lone_model(torch.ones(4, 8)).sum().backward()
    assert set(rows(tmp_path, "collective")["step"]) == {1, 3, 5}
    assert (rows(tmp_path, "step").query("step % 2 == 0")["comm_seconds"] == 0).all()


class TwoWays(nn.Module):
    """The layer whose gradient comes last depends on what goes in."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, way: bool) -> torch.Tensor:
        through = self.second(self.first(x)) if way else self.first(self.second(x))
        return torch.as_tensor(through)


def test_a_model_that_comes_to_train_other_parts_is_looked_at_anew(
    lone_model: DistributedDataParallel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ddp, "UNSEEN", 2)
    monkeypatch.setattr(ddp, "LOOKED_AGAIN", 4)
    model = DistributedDataParallel(TwoWays(), find_unused_parameters=True)
    late = 0.03
    with crosswind.run(spool=tmp_path) as run:
        run.watch(model)
        for number in run.steps(range(20)):
            is_first = number < 10
            last = model.module.first if is_first else model.module.second
            hook = last.weight.register_hook(lambda _: time.sleep(late))  # just before the last gradient is ready
            model(torch.ones(4, 8), is_first).sum().backward()
            hook.remove()
    collectives = rows(tmp_path, "collective").merge(rows(tmp_path, "step"), on="step", suffixes=("", "_step"))
    comes_after = (collectives["ts_ns"] - collectives["ts_ns_step"]) > 0.9e9 * late
    assert list(collectives["step"]) == list(range(20))
    assert comes_after[:10].all()
    assert comes_after[16:].all()  # by then it has noticed


def reductions(spool: Path, model: DistributedDataParallel, passes: Callable[[int], None]) -> tuple[int, list[int]]:
    """Return the number of passes DDP reduced, by a communication hook, and the steps in which one was recorded."""
    reduced = 0

    def count(_: Any, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        nonlocal reduced
        reduced += bucket.is_last()
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    model.register_comm_hook(None, count)
    with crosswind.run(spool=spool) as run:
        run.watch(model)
        for number in run.steps(range(8)):
            passes(number)
    return reduced, [int(step) for step in rows(spool, "collective")["step"]]


class Checkpointed(nn.Module):
    """Three layers that are recomputed in the backward pass."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.layers, self.reentrant = nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


@pytest.mark.parametrize("reentrant", [True, False])
def test_parts_that_are_computed_anew_are_no_passes_of_their_own(
    lone_model: DistributedDataParallel, tmp_path: Path, reentrant: bool
) -> None:
    model = DistributedDataParallel(Checkpointed(reentrant=reentrant))
    x = torch.ones(4, 8, requires_grad=True)
    assert reductions(tmp_path, model, lambda _: model(x).sum().backward()) == (8, list(range(8)))


def test_what_is_frozen_later_ends_no_watch(
    lone_model: DistributedDataParallel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ddp, "LOOKED_AGAIN", 1)
    model = DistributedDataParallel(TwoWays(), find_unused_parameters=True)

    def passes(number: int) -> None:
        if number == 4:
            model.module.second.requires_grad_(requires_grad=False)
        model(torch.ones(4, 8), way=True).sum().backward()

    reduced, reported = reductions(tmp_path, model, passes)
    assert (reduced, reported) == (8, list(range(8)))


def test_a_look_without_gradients_before_the_backward_pass_hides_nothing(
    lone_model: DistributedDataParallel, tmp_path: Path
) -> None:
    def passes(_: int) -> None:
        loss = lone_model(torch.ones(4, 8)).sum()
        with torch.no_grad():
            lone_model(torch.ones(4, 8))
        loss.backward()

    assert reductions(tmp_path, lone_model, passes) == (8, list(range(8)))


def test_a_pass_that_fails_is_not_reported_with_the_next_one(
    lone_model: DistributedDataParallel, tmp_path: Path
) -> None:
    other = nn.Linear(8, 1)

    def fail(_: torch.Tensor) -> None:
        raise RuntimeError("too late")

    with crosswind.run(spool=tmp_path) as run:
        run.watch(lone_model)
        for _ in run.steps(range(2)):
            x = torch.ones(4, 8, requires_grad=True)
            x.register_hook(fail)
            with suppress(RuntimeError):
                lone_model(x).sum().backward()
            other(torch.ones(4, 8)).sum().backward()
    assert len(rows(tmp_path, "collective")) == 0


def test_another_models_passes_are_not_this_ones(lone_model: DistributedDataParallel, tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path) as run:
        run.watch(lone_model)
        for _ in run.steps(range(6)):
            lone_model(torch.ones(4, 8)).sum().backward()
            nn.Linear(8, 1)(torch.ones(4, 8)).sum().backward()
    assert list(rows(tmp_path, "collective")["step"]) == list(range(6))


def test_a_watched_model_is_copied_and_saved_as_ever(lone_model: DistributedDataParallel, tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path) as run:
        run.watch(lone_model)
        copy.deepcopy(lone_model.module)
        torch.save(lone_model.module, tmp_path / "model.pt")
    assert not lone_model.module.weight._post_accumulate_grad_hooks


def test_a_model_is_watched_by_one_run_after_another(lone_model: DistributedDataParallel, tmp_path: Path) -> None:
    backward = torch.autograd.backward
    for name in ("a", "b"):
        with crosswind.run(spool=tmp_path / name) as run:
            assert run.watch(lone_model) is lone_model
            for _ in run.steps(range(2)):
                lone_model(torch.ones(4, 8)).sum().backward()
        assert len(rows(tmp_path / name, "collective")) == 2
    assert torch.autograd.backward is backward


def test_a_model_that_is_watched_twice_reports_once(lone_model: DistributedDataParallel, tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path) as run:
        run.watch(lone_model)
        run.watch(lone_model)
        for _ in run.steps(range(2)):
            lone_model(torch.ones(4, 8)).sum().backward()
    assert len(rows(tmp_path, "collective")) == 2


def test_the_work_of_a_step_is_counted_once(lone_model: DistributedDataParallel, tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path, count_work=True) as run:
        for _ in run.steps(range(5)):
            lone_model(torch.ones(4, 8, requires_grad=True)).sum().backward()
    counted = rows(tmp_path, "progress")
    assert set(counted["step"]) == {2}
    values = dict(zip(counted["name"], counted["value"], strict=True))
    assert values["step_flops"] == 2 * 4 * 8 * 3  # the product, and its two gradients
    assert values["step_bytes"] > 4 * (4 * 8 + 8 + 4)  # at least what the product reads and writes


def test_a_loop_that_is_left_in_the_counted_step_computes_as_before(tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path, count_work=True) as run:
        for number in run.steps(range(5)):
            if number == 2:
                break
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
