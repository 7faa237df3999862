"""Three-dimensional parallelism.

Degrees as Megatron-LM takes them; tensor parallelism stays within a node (Narayanan et al. 2021, takeaway 1), and an
interleaved schedule needs micro-batches in multiples of the stages (the same, section 2.2).
"""

from crosswind.models.tuner.templates.template import Template

DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)

PARALLEL_DEGREES = Template(
    name="parallel_degrees",
    description="data, tensor and pipeline degrees with their micro-batches and schedule",
    parameters={
        "dp": {"kind": "ordinal", "values": list(DEGREES), "description": "replicas: data-parallel degree"},
        "tp": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16],
            "description": "ranks that share each matrix: tensor-parallel degree",
        },
        "pp": {
            "kind": "ordinal",
            "values": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
            "description": "stages: pipeline-parallel degree",
        },
        "micro_batch": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16],
            "description": "samples that go through the stages together",
        },
        "micro_batches": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16, 32, 64, 128],
            "description": "micro-batches of one replica in a step",
        },
        "schedule": {
            "kind": "categorical",
            "values": ["gpipe", "1f1b", "interleaved"],
            "when": "pp > 1",
            "description": "order of forward and backward passes in the pipeline",
        },
        "interleave": {
            "kind": "ordinal",
            "values": [2, 3, 4],
            "when": "schedule == 'interleaved'",
            "description": "model chunks of each stage",
        },
        "recompute": {"kind": "boolean", "description": "activation recomputation of every layer"},
    },
    constraints=(
        "dp * tp * pp == ranks",
        "tp <= ranks_a_node",
        "micro_batch * micro_batches * dp == global_batch",
        "schedule != 'interleaved' or micro_batches % pp == 0",
        "interleave * pp <= layers",
        "fits_memory",
    ),
    needs={"ranks": "how many devices the job has"},
)
