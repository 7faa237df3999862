"""Gloo, the back end on processors.

Threads around ProcessGroupGloo's default of 2 (torch.distributed); buckets as in ddp.py; fp16 compression is torch's
communication hook (torch.distributed.algorithms.ddp_comm_hooks.default_hooks).
"""

from crosswind.models.tuner.templates.template import Template

GLOO = Template(
    name="gloo",
    description="DDP over Gloo on processors: threads of the program and of Gloo, buckets, compression",
    parameters={
        "OMP_NUM_THREADS": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16, 32],
            "description": "threads of a rank's operators (export it under this name)",
        },
        "gloo_threads": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8],
            "description": "collectives that Gloo works on at once",
        },
        "bucket_mb": {
            "kind": "ordinal",
            "values": [1, 2, 5, 10, 25, 50, 100, 200],
            "description": "bucket_cap_mb: MiB of gradients reduced together",
        },
        "compression": {
            "kind": "categorical",
            "values": ["none", "fp16"],
            "description": "format of gradients on the network",
        },
        "static_graph": {"kind": "boolean", "description": "static_graph of DistributedDataParallel"},
    },
    constraints=("OMP_NUM_THREADS + gloo_threads <= cores",),  # of a rank
)
