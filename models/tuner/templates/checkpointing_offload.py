"""Room on the device against time: recomputation and offload.

Chen et al. 2016 ("Training deep nets with sublinear memory cost") for keeping every n-th layer's input; Ren et al. 2021
(ZeRO-Offload) for the optimizer on the host; Wahib et al. 2020 (KARMA) for swapped activations.
"""

from crosswind.models.tuner.templates.template import Template

CHECKPOINTING_OFFLOAD = Template(
    name="checkpointing_offload",
    description="activation checkpointing, offload to the host, and the micro-batch that they make room for",
    parameters={
        "micro_batch": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16, 32, 64],
            "description": "samples of one rank in one forward pass",
        },
        "recompute": {"kind": "boolean", "description": "activations are computed again in the backward pass"},
        "recompute_every": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8],
            "when": "recompute",
            "description": "layers between two activations that are kept",
        },
        "offload": {
            "kind": "categorical",
            "values": ["none", "optimizer", "activations"],
            "description": "what lives in the host's memory",
        },
        "pinned": {
            "kind": "boolean",
            "when": "offload != 'none'",
            "description": "page-locked host memory: quicker copies, less for others",
        },
    },
    constraints=("recompute_every <= layers", "fits_memory"),
)
