"""Tasks of the races: what is tuned from what, and what had been seen of it while the portfolio was made.

Races were run on REFERENCE_DESIGN and MORE_DESIGN alone while the portfolio was made, and later while it was rewritten;
REFERENCE_HELD_OUT was raced once after either. That set is not wholly unseen: size, first rows, minimum and median of
three of its tables (gemm, syr2k, heFFTe on Theta) had been printed, the order of the arms follows published remarks on
all seven references, and the first portfolio's losses on it (convolution MI250X, heFFTe on Theta) were known when the
second was made, whose every choice was made by the other tables. Convolution is in both sets, on another vendor's GPU.
"""

from collections.abc import Sequence

from benchmarks.tuning.tables import TABLES, Task

VENDOR = {"MI250X": "amd", "W6600": "amd", "W7800": "amd"}


def _gpus(family: str, target: str, others: Sequence[str]) -> Task:
    names = [f"{family}/{gpu}" for gpu in (target, *others)]
    features = {name: {"vendor": VENDOR.get(name.rpartition("/")[2], "nvidia")} for name in names}
    return Task(names[0], tuple(names[1:]), features)


def _nodes(family: str, size: str, target: int, others: Sequence[int]) -> Task:
    names = {nodes: f"{family}/n{nodes:03d}_s{size}" for nodes in (target, *others)}
    return Task(
        names[target], tuple(names[nodes] for nodes in others), {name: {"nodes": n} for n, name in names.items()}
    )


REFERENCE_DESIGN = (
    _gpus("kt_convolution", "A100", ["A4000", "MI250X", "W6600"]),
    _gpus("kt_dedispersion", "W7800", ["A100", "A4000", "MI250X"]),
    _nodes("heffte_polaris", "512x512x512", 16, [2, 4, 8]),
)
REFERENCE_HELD_OUT = (
    _gpus("kt_convolution", "MI250X", ["A100", "A4000", "W6600"]),
    _gpus("ktbat_gemm", "RTX_3090", ["RTX_2080_Ti", "RTX_3060_laptop"]),
    Task("syr2k/XL", ("syr2k/SM",)),
    _nodes("heffte_theta", "1400", 64, [1, 2, 4, 8]),
)
MORE_DESIGN = (
    _gpus("kt_convolution", "W6600", ["A100", "A4000", "MI250X"]),
    _gpus("kt_convolution", "A4000", ["A100", "MI250X", "W6600"]),
    _gpus("ktbat_convolution", "RTX_3090", ["RTX_2080_Ti", "RTX_3060_laptop"]),
    _gpus("ktbat_convolution", "RTX_2080_Ti", ["RTX_3090", "RTX_3060_laptop"]),
    _gpus("kt_dedispersion", "MI250X", ["A100", "A4000", "W7800"]),
    _nodes("heffte_polaris", "256x256x256", 16, [2, 4, 8]),
    _nodes("heffte_polaris", "512x512x512", 8, [1, 2, 4]),
    _nodes("heffte_theta", "1400", 16, [1, 2, 4]),
    _nodes("heffte_theta", "512", 32, [2, 4, 8]),
    Task("gctla_syr2k/L", ("gctla_syr2k/S", "gctla_syr2k/M")),
)
HEFFTE_LARGEST = (
    _nodes("heffte_polaris", "64x64x64", 16, [2, 4, 8]),
    _nodes("heffte_polaris", "1024x1024x1024", 16, [2, 4, 8]),
    _nodes("heffte_theta", "512", 64, [2, 4, 8]),
    _nodes("heffte_theta", "1024", 64, [2, 4, 8]),
)
ANOTHER_PROGRAM = (  # whose parameters happen to be called alike
    Task("ktbat_convolution/RTX_3090", ("kt_convolution/MI250X", "kt_convolution/W6600")),
    Task("gctla_rsbench/L", ("gctla_amg/L", "gctla_amg/S")),
    Task("gctla_sw4lite/L", ("gctla_xsbench/L", "gctla_xsbench/S")),
)
ZEUS_GPUS = ("a40", "v100", "p100")


def zeus() -> list[Task]:
    """Every training job on every GPU, from each other one that has it."""
    families = sorted(path.name for path in TABLES.glob("zeus_*"))
    pairs = [(family, a, b) for family in families for a in ZEUS_GPUS for b in ZEUS_GPUS if a != b]
    return [_gpus(family, a, [b]) for family, a, b in pairs]
