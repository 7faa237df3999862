"""A program in the form of DeepSpeed's getting-started: `deepspeed.initialize`, `engine.backward`, `engine.step`."""

import argparse

import deepspeed
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--stage", type=int, default=2)
parser.add_argument("--steps", type=int, default=12)
options = parser.parse_args()

deepspeed.init_distributed("gloo", verbose=False)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 1))
settings = {
    "train_micro_batch_size_per_gpu": 8,
    "zero_optimization": {"stage": options.stage, "stage3_param_persistence_threshold": 0},
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,  # it would be compiled first
}
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
for _ in range(options.steps):
    loss = engine(torch.randn(8, 64)).square().mean()
    engine.backward(loss)
    engine.step()
