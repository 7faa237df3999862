"""Data-parallel training.

Ranges: bucket size around PyTorch's default of 25 MiB (Li et al. 2020, "PyTorch Distributed", figures 7 and 8 vary it
from 0 to 200 MiB); workers and threads up to what a rank has of a node's cores; batches in powers of two.
"""

from crosswind.models.tuner.templates.template import Template

DDP = Template(
    name="ddp",
    description="torch DistributedDataParallel: batch, gradient buckets, input workers, threads, compile, precision",
    parameters={
        "batch": {
            "kind": "ordinal",
            "values": [4, 8, 16, 32, 64, 128, 256],
            "description": "samples of one rank in one forward pass",
        },
        "accumulation": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8],
            "description": "forward passes before gradients are reduced",
        },
        "bucket_mb": {
            "kind": "ordinal",
            "values": [1, 2, 5, 10, 25, 50, 100, 200],
            "description": "bucket_cap_mb: MiB of gradients reduced together",
        },
        "workers": {
            "kind": "ordinal",
            "values": [0, 1, 2, 4, 8],
            "description": "num_workers of the DataLoader; 0 loads in the training process",
        },
        "threads": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16],
            "description": "OMP_NUM_THREADS of a rank",
        },
        "compile": {"kind": "boolean", "description": "torch.compile the model"},
        "precision": {
            "kind": "categorical",
            "values": ["fp32", "bf16", "fp16"],
            "description": "format of matrix products under autocast",
        },
    },
    constraints=(
        "batch * accumulation * ranks == global_batch",
        "batch <= batch_max",
        "workers + threads <= cores",  # of a rank
    ),
)
