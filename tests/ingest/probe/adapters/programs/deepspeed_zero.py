"""DeepSpeed with ZeRO of the stage that is asked for; rank 1 is late between forward and backward."""

import sys
from collections.abc import Callable
from typing import Any

import deepspeed
import torch
from rank import batches, main
from torch import nn


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=configuration(int(sys.argv[1])))
    run.watch(engine)
    for batch in run.steps(batches()):
        loss = engine(batch).square().mean()
        late()
        engine.backward(loss)
        engine.step()
    return engine.module


def configuration(stage: int) -> dict[str, Any]:
    zero = {"stage": stage, "stage3_param_persistence_threshold": 0}
    return {
        "train_micro_batch_size_per_gpu": 8,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # it would be compiled first
    }


if __name__ == "__main__":
    deepspeed.init_distributed("gloo", verbose=False)
    main(train, late_rank=1)
