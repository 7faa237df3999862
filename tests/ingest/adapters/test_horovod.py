"""Horovod's documented functions in a stand-in of one rank: Horovod itself does not build against today's PyTorch."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.ingest.adapters.trained import rows

import crosswind
from crosswind.ingest.probe.adapters import horovod


class _DistributedOptimizer(torch.optim.SGD):
    """What `hvd.DistributedOptimizer` gives: the class of the optimizer that it got, with one more method."""

    def synchronize(self) -> None:
        """Waits for all gradients."""


@pytest.fixture
def hvd(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("horovod.torch")
    handles: dict[int, torch.Tensor] = {}

    def allreduce(tensor: torch.Tensor, name: str | None = None) -> torch.Tensor:
        return tensor.clone()

    def allreduce_async_(tensor: torch.Tensor, name: str | None = None) -> int:
        handles[len(handles)] = tensor
        return len(handles) - 1

    vars(module).update(allreduce=allreduce, allreduce_async_=allreduce_async_, synchronize=handles.pop)
    monkeypatch.setitem(sys.modules, "horovod.torch", module)
    return module


def test_functions_report_what_they_reduce_and_are_put_back(hvd: types.ModuleType, tmp_path: Path) -> None:
    before = dict(vars(hvd))
    with crosswind.run(spool=tmp_path) as run:
        assert run.watch(hvd) is hvd
        for _ in run.steps("ab"):
            assert hvd.allreduce(torch.ones(4)).tolist() == [1, 1, 1, 1]
            hvd.synchronize(hvd.allreduce_async_(torch.ones(8)))
    assert vars(hvd) == before
    found = rows(tmp_path, "collective").sort_values(["step", "sequence"])
    assert found["size_bytes"].tolist() == [16, 32, 16, 32]
    assert set(found["operation"]) == {"all_reduce"}
    assert (found["duration_seconds"] > 0).all()


def test_an_optimizer_reports_its_wait_for_all_gradients(tmp_path: Path) -> None:
    optimizer = _DistributedOptimizer([torch.ones(1, requires_grad=True)], lr=0.1)
    before = _DistributedOptimizer.synchronize
    with crosswind.run(spool=tmp_path) as run:
        run.watch(optimizer)
        for _ in run.steps("ab"):
            optimizer.synchronize()
    assert _DistributedOptimizer.synchronize is before
    assert rows(tmp_path, "collective")["operation"].tolist() == ["all_reduce"] * 2


def test_other_optimizers_are_left_to_others() -> None:
    assert not horovod.matches(torch.optim.SGD([torch.ones(1)], lr=0.1))
