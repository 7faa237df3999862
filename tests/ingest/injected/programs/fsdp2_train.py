"""A sharded transformer in the form of pytorch/examples' distributed/FSDP2: `fully_shard` per layer, then the whole.

$ torchrun --standalone --nproc_per_node 2 fsdp2_train.py --mixed-precision
"""

import argparse

import torch
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard


class Transformer(torch.nn.Module):
    def __init__(self, layers, dim):
        super().__init__()
        self.embedding = torch.nn.Embedding(64, dim)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(dim, 2, 2 * dim, dropout=0.0, batch_first=True) for _ in range(layers)
        )
        self.output = torch.nn.Linear(dim, 64)

    def forward(self, tokens):
        h = self.embedding(tokens)
        for layer in self.layers:
            h = layer(h)
        return self.output(h)


def main(args):
    torch.distributed.init_process_group(backend="gloo")
    torch.manual_seed(0)
    model = Transformer(args.layers, 32)
    fsdp_kwargs = {}
    if args.mixed_precision:
        fsdp_kwargs["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, **fsdp_kwargs)
    fully_shard(model, **fsdp_kwargs)
    assert isinstance(model, FSDPModule)
    optim = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(args.steps):
        x = torch.randint(0, 64, (4, 16))
        loss = model(x).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optim.step()
        optim.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PyTorch FSDP2 example")
    parser.add_argument("--mixed-precision", action="store_true", default=False)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    main(parser.parse_args())
