"""Power limit and clocks of a GPU.

Limits in steps of 25 W as You et al. 2023 (Zeus) swept them, between the ends that `nvidia-smi -q -d POWER` prints
("Min Power Limit", "Max Power Limit"); clocks over what `nvidia-smi -q -d SUPPORTED_CLOCKS` lists of recent devices.
"""

from crosswind.models.tuner.templates.template import Template

POWER = Template(
    name="power",
    description="GPU power limit and locked clocks, for energy or speed under a cap",
    parameters={
        "power_limit_watts": {
            "kind": "ordinal",
            "values": list(range(100, 1001, 25)),
            "description": "nvidia-smi --power-limit",
        },
        "lock_clocks": {"kind": "boolean", "description": "whether the clock is held at sm_clock_mhz"},
        "sm_clock_mhz": {
            "kind": "ordinal",
            "values": [705, 855, 1005, 1155, 1305, 1410, 1590, 1755, 1980],
            "when": "lock_clocks",
            "description": "nvidia-smi --lock-gpu-clocks",
        },
    },
    constraints=(
        "power_limit_watts >= power_min_watts",
        "power_limit_watts <= power_max_watts",
        "sm_clock_mhz <= clock_max_mhz",
    ),
    needs={
        "power_min_watts": "Min Power Limit of nvidia-smi -q -d POWER",
        "power_max_watts": "Max Power Limit of nvidia-smi -q -d POWER",
    },
)
