"""NCCL's environment variables.

Values of NVIDIA's "NCCL environment variables". LL128 is left out: the manual warns that forcing it where the hardware
does not keep its promise corrupts data. Sockets times threads must not exceed 64 there.
"""

from crosswind.models.tuner.templates.template import Template

MEBIBYTE = 2**20

NCCL = Template(
    name="nccl",
    description="NCCL variables: algorithm, protocol, channels, buffers, sockets (export them under these names)",
    parameters={
        "NCCL_ALGO": {"kind": "categorical", "values": ["Ring", "Tree"], "description": "shape of the collectives"},
        "NCCL_PROTO": {"kind": "categorical", "values": ["Simple", "LL"], "description": "bandwidth or latency"},
        "NCCL_MIN_NCHANNELS": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16, 32],
            "description": "fewest channels, thus blocks of the GPU",
        },
        "NCCL_MAX_NCHANNELS": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16, 32],
            "description": "most channels, thus blocks of the GPU",
        },
        "NCCL_NTHREADS": {"kind": "ordinal", "values": [64, 128, 256, 512], "description": "threads of a block"},
        "NCCL_BUFFSIZE": {
            "kind": "ordinal",
            "values": [MEBIBYTE, 2 * MEBIBYTE, 4 * MEBIBYTE, 8 * MEBIBYTE, 16 * MEBIBYTE],
            "description": "bytes of the buffer between two GPUs; 4 MiB by default",
        },
        "NCCL_SOCKET_NTHREADS": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16],
            "description": "helper threads of a connection over TCP",
        },
        "NCCL_NSOCKS_PERTHREAD": {
            "kind": "ordinal",
            "values": [1, 2, 4, 8, 16],
            "description": "sockets that each helper thread opens",
        },
    },
    constraints=(
        "NCCL_MIN_NCHANNELS <= NCCL_MAX_NCHANNELS",
        "NCCL_SOCKET_NTHREADS * NCCL_NSOCKS_PERTHREAD <= 64",
    ),
)
