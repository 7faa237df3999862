"""Pruning of weights under a floor for the accuracy.

Levels as Hoefler et al. 2021, "Sparsity in deep learning", tabulate them; 2:4 is the pattern of sparse tensor cores
(Mishra et al. 2021), which is half empty by definition; block sizes of common sparse kernels.
"""

from crosswind.models.tuner.templates.template import Template

SPARSITY = Template(
    name="sparsity",
    description="pruning level and pattern, with a floor for the accuracy",
    parameters={
        "sparsity": {
            "kind": "ordinal",
            "values": [0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98],
            "description": "share of the weights that are zero",
        },
        "pattern": {
            "kind": "categorical",
            "values": ["unstructured", "2:4", "block"],
            "when": "sparsity > 0",
            "description": "which weights may be zero together",
        },
        "block_size": {
            "kind": "ordinal",
            "values": [4, 8, 16, 32, 64],
            "when": "pattern == 'block'",
            "description": "rows and columns of a block",
        },
        "schedule": {
            "kind": "categorical",
            "values": ["one_shot", "gradual"],
            "when": "sparsity > 0",
            "description": "pruned at once, or step by step during training",
        },
    },
    constraints=("pattern != '2:4' or sparsity == 0.5",),
    needs={"accuracy_floor": "the least accuracy that is acceptable"},
    limits=("accuracy >= accuracy_floor",),
)
