"""Horovod's documented functions in a stand-in of one rank: Horovod itself does not build against today's PyTorch."""

import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.ingest.spooled import rows

import crosswind
from crosswind.ingest.probe.adapters import horovod


@dataclass(frozen=True)
class ProcessSet:
    """As in horovod/common/process_sets.py; the global one has number 0."""

    process_set_id: int
    ranks: list[int]


@pytest.fixture
def hvd(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("horovod.torch")
    handles: dict[int, torch.Tensor] = {}

    def allreduce(tensor: torch.Tensor, process_set: ProcessSet | None = None) -> torch.Tensor:
        return tensor

    def allreduce_async_(tensor: torch.Tensor, name: str | None = None) -> int:
        handles[len(handles)] = tensor
        return len(handles) - 1

    def poll(handle: int) -> bool:
        return bool(handles[handle].sum() == 0)

    vars(module).update(allreduce=allreduce, allreduce_async_=allreduce_async_, poll=poll, synchronize=handles.pop)
    monkeypatch.setitem(sys.modules, "horovod.torch", module)
    return module


def reported(spool: Path, thing: object, step: Callable[[], object]) -> pd.DataFrame:
    with crosswind.run(spool=spool) as run:
        assert run.watch(thing) is thing
        for _ in run.steps("ab"):
            step()
    return rows(spool, "collective").sort_values(["step", "sequence"])


def test_functions_report_what_they_reduce_and_are_put_back(hvd: types.ModuleType, tmp_path: Path) -> None:
    before = dict(vars(hvd))

    def step() -> None:
        assert hvd.allreduce(torch.ones(4)).tolist() == [1, 1, 1, 1]
        hvd.synchronize(hvd.allreduce_async_(torch.ones(8)))

    collectives = reported(tmp_path, hvd, step)
    assert vars(hvd) == before
    assert collectives["size_bytes"].tolist() == [16, 32, 16, 32]
    assert set(zip(collectives["operation"], collectives["group"], strict=True)) == {("all_reduce", "world")}
    assert (collectives["duration_seconds"] > 0).all()


def test_a_process_set_is_a_group_of_its_own(hvd: types.ModuleType, tmp_path: Path) -> None:
    def step() -> None:
        hvd.allreduce(torch.ones(1), process_set=ProcessSet(0, [0, 1, 2, 3]))
        hvd.allreduce(torch.ones(1), ProcessSet(1, [0, 2]))

    assert reported(tmp_path, hvd, step)["group"].tolist() == ["world", "process_set 0,2"] * 2


def test_the_end_of_what_was_done_before_anybody_waited_is_unknown(hvd: types.ModuleType, tmp_path: Path) -> None:
    def step() -> None:
        for tensor in (torch.zeros(1), torch.ones(1)):
            handle = hvd.allreduce_async_(tensor)
            time.sleep(0.001)
            hvd.synchronize(handle)

    assert reported(tmp_path, hvd, step)["duration_seconds"].isna().tolist() == [True, False] * 2


def test_sparse_tensors_count_as_if_they_were_dense(hvd: types.ModuleType, tmp_path: Path) -> None:
    sparse = torch.ones(4).to_sparse()
    assert reported(tmp_path, hvd, lambda: hvd.allreduce(sparse))["size_bytes"].tolist() == [16, 16]


def test_what_cannot_be_measured_ends_the_watch_alone(
    hvd: types.ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers = []
    collectives = reported(tmp_path, hvd, lambda: answers.append(hvd.allreduce("no tensor")))
    assert answers == ["no tensor", "no tensor"]
    assert collectives.empty
    [warning] = [record.getMessage() for record in caplog.records]
    expected = "crosswind stops watching collectives: AttributeError: 'str' object has no attribute 'numel'"
    assert warning == expected


def distributed(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return what `hvd.DistributedOptimizer` gives: a class of the optimizer's own name, in Horovod's module."""

    def synchronize(self: object) -> None:
        """Waits for all gradients."""

    own = {"__module__": "horovod.torch.optimizer", "synchronize": synchronize, "_handles": {}}
    optimizer.__class__ = type(type(optimizer).__name__, (type(optimizer),), own)
    return optimizer


def test_an_optimizer_reports_its_wait_for_all_gradients(tmp_path: Path) -> None:
    optimizer = distributed(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1))
    assert type(optimizer).__name__ == "SGD"
    before = type(optimizer).synchronize  # type: ignore[attr-defined]
    collectives = reported(tmp_path, optimizer, partial(methodcaller("synchronize"), optimizer))
    assert type(optimizer).synchronize is before  # type: ignore[attr-defined]
    assert collectives["operation"].tolist() == ["all_reduce"] * 2
    assert (collectives["duration_seconds"] > 0).all()


def test_gradients_that_were_there_already_have_no_known_end(hvd: types.ModuleType, tmp_path: Path) -> None:
    parameter = torch.ones(1, requires_grad=True)
    optimizer = distributed(torch.optim.SGD([parameter], lr=0.1))
    type(optimizer)._handles[parameter] = (hvd.allreduce_async_(torch.zeros(1)), None)  # type: ignore[attr-defined]
    collectives = reported(tmp_path, optimizer, partial(methodcaller("synchronize"), optimizer))
    assert collectives["duration_seconds"].isna().all()


def test_other_optimizers_are_left_to_others() -> None:
    assert not horovod.matches(torch.optim.SGD([torch.ones(1)], lr=0.1))
