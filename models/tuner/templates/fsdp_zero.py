"""Sharded data parallelism.

Ranges: stages of Rajbhandari et al. 2020 (ZeRO); bucket and prefetch sizes around DeepSpeed's defaults of 5e8 and 5e7
elements (DeepSpeed configuration reference, "ZeRO Optimizations"); offload of Ren et al. 2021 (ZeRO-Offload).
"""

from crosswind.models.tuner.templates.template import Template

FSDP_ZERO = Template(
    name="fsdp_zero",
    description="FSDP or DeepSpeed ZeRO: stage, buckets, prefetch, overlap, offload, micro-batch",
    parameters={
        "zero_stage": {
            "kind": "ordinal",
            "values": [0, 1, 2, 3],
            "description": "what is sharded: 1 optimizer, 2 also gradients, 3 also weights (FULL_SHARD)",
        },
        "micro_batch": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16, 32],
            "description": "samples of one rank in one forward pass",
        },
        "accumulation": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16],
            "description": "forward passes before an optimizer step",
        },
        "reduce_bucket": {
            "kind": "ordinal",
            "values": [10_000_000, 50_000_000, 200_000_000, 500_000_000, 1_000_000_000],
            "when": "zero_stage >= 1",
            "description": "reduce_bucket_size: gradient elements reduced together",
        },
        "prefetch_bucket": {
            "kind": "ordinal",
            "values": [0, 10_000_000, 50_000_000, 200_000_000],
            "when": "zero_stage == 3",
            "description": "stage3_prefetch_bucket_size: weight elements gathered ahead",
        },
        "overlap": {
            "kind": "boolean",
            "when": "zero_stage >= 1",
            "description": "overlap_comm: reduce gradients during the backward pass",
        },
        "offload": {
            "kind": "categorical",
            "values": ["none", "cpu"],
            "when": "zero_stage >= 2",
            "description": "where optimizer states live",
        },
        "recompute": {"kind": "boolean", "description": "activation checkpointing of every layer"},
    },
    constraints=("micro_batch * accumulation * ranks == global_batch", "fits_memory"),
)
