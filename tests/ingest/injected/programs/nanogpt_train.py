"""A character model in the form of nanoGPT's train.py: globals that the command line overrides, batches from a memmap.

$ torchrun --standalone --nproc_per_node=2 nanogpt_train.py config.py --batch_size=8
"""

import os
import sys
import time
from ast import literal_eval
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

out_dir = "out"
eval_interval = 4
log_interval = 1
eval_iters = 2
gradient_accumulation_steps = 4
batch_size = 4
block_size = 16
n_embd = 32
learning_rate = 1e-2
max_iters = 8
weight_decay = 1e-1
grad_clip = 1.0
seed = 1337
backend = "gloo"
config_keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, int | float | bool | str)]
for arg in sys.argv[1:]:  # as nanoGPT's configurator.py
    if "=" not in arg:
        exec(Path(arg).read_text())
    else:
        key, val = arg[2:].split("=", 1)
        assert key in config_keys, f"Unknown config key: {key}"
        try:
            globals()[key] = literal_eval(val)
        except (SyntaxError, ValueError):
            globals()[key] = val

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend=backend)
    ddp_rank = int(os.environ["RANK"])
    ddp_world_size = int(os.environ["WORLD_SIZE"])
    master_process = ddp_rank == 0
    seed_offset = ddp_rank
    gradient_accumulation_steps //= ddp_world_size
else:
    master_process = True
    seed_offset = 0
os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(seed + seed_offset)
np.random.seed(seed + seed_offset)
data = (
    np.memmap(os.path.join(out_dir, f"data{seed_offset}.bin"), dtype=np.uint16, mode="w+", shape=(4096,))
    if ddp
    else (np.zeros(4096, np.uint16))
)
data[:] = np.random.randint(0, 64, len(data))


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = torch.nn.Embedding(64, n_embd)
        self.block = torch.nn.TransformerEncoderLayer(n_embd, 2, 4 * n_embd, dropout=0.0, batch_first=True)
        self.lm_head = torch.nn.Linear(n_embd, 64)

    def forward(self, idx, targets):
        logits = self.lm_head(self.block(self.wte(idx)))
        return logits, F.cross_entropy(logits.view(-1, 64), targets.view(-1))


model = GPT()
scaler = torch.amp.GradScaler("cpu", enabled=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
if ddp:
    model = DDP(model)
raw_model = model.module if ddp else model


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = [model(*get_batch())[1].item() for _ in range(eval_iters)]
    model.train()
    return sum(losses) / len(losses)


iter_num = 0
X, Y = get_batch()
t0 = time.time()
while True:
    if iter_num % eval_interval == 0 and master_process:
        loss_now = estimate_loss() if not ddp else 0.0
        torch.save({"model": raw_model.state_dict(), "loss": loss_now}, os.path.join(out_dir, "ckpt.pt"))
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        with nullcontext():
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    t1 = time.time()
    dt, t0 = t1 - t0, t1
    if iter_num % log_interval == 0 and master_process:
        print(f"iter {iter_num}: loss {loss.item() * gradient_accumulation_steps:.4f}, time {dt * 1000:.2f}ms")
    iter_num += 1
    if iter_num > max_iters:
        break
if ddp:
    destroy_process_group()
