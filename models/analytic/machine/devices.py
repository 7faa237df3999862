"""Real accelerators and processors, by their makers' data sheets.

Rates are dense. `flops_32bit` is that of the format which training in 32 bit uses by default: TF32 where the device
has it, bf16 passes on a TPU. A figure that the maker does not publish is NaN. A processor is one socket, its memory the
most that the maker supports.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

UNPUBLISHED = math.nan


@dataclass(frozen=True)
class Device:
    """Peak figures of a maker's data sheet; `flops_16bit` is dense, without sparsity, fp32 where there is no 16 bit."""

    name: str
    flops_16bit: float  # floating-point operations per second
    flops_32bit: float  # per second, in the format that training uses by default (TF32 where the device has it)
    memory_bytes_per_second: float
    memory_bytes: float
    power_watts: float  # of the whole device at its top limit (TDP)
    year: int  # of its first shipping


def _sheet(name: str, *figures: float) -> Device:
    """Make a device of TFLOP/s in 16 bit, TFLOP/s in 32 bit, GB/s, GB, W and the year."""
    teraflops_16bit, teraflops_32bit, gigabytes_per_second, gigabytes, watts, year = figures
    return Device(
        name,
        flops_16bit=teraflops_16bit * 1e12,
        flops_32bit=teraflops_32bit * 1e12,
        memory_bytes_per_second=gigabytes_per_second * 1e9,
        memory_bytes=gigabytes * 1e9,
        power_watts=watts,
        year=int(year),
    )


# Patterns are searched in the lower-case text, its words divided by single spaces; the first match decides, so special
# ones come before general ones: PCIe before SXM, which is the default.
_SHEETS: tuple[tuple[str, Device], ...] = (
    # NVIDIA data sheets "Blackwell architecture technical overview" 2024, "HGX B200", "GB200 NVL72", "B300".
    (r"gb300", _sheet("GB300", 2500, 1250, 8000, 288, 1400, 2025)),
    (r"gb200", _sheet("GB200", 2500, 1250, 8000, 186, 1200, 2024)),
    (r"b300", _sheet("B300", 2250, 1125, 8000, 288, 1100, 2025)),
    (r"b200|blackwell gpu", _sheet("B200", 2250, 1125, 8000, 180, 1000, 2024)),
    (r"b100", _sheet("B100", 1750, 875, 8000, 192, 700, 2024)),
    # NVIDIA data sheets "H200", "H100", "GH200", and "Hopper architecture" white paper 2022.
    (r"gh200", _sheet("GH200", 989, 494, 4000, 96, 700, 2023)),
    (r"h200.*(nvl|pcie)", _sheet("H200-NVL", 836, 418, 4800, 141, 600, 2024)),
    (r"h200", _sheet("H200", 989, 494, 4800, 141, 700, 2024)),
    (r"h100.*nvl", _sheet("H100-NVL", 836, 418, 3900, 94, 400, 2023)),
    (r"h100.*pcie", _sheet("H100-PCIe", 756, 378, 2039, 80, 350, 2022)),
    (r"h[18]00", _sheet("H100-SXM", 989, 494, 3350, 80, 700, 2022)),  # H800: fewer links, the same peaks
    (r"\bh20\b", _sheet("H20", 148, 74, 4000, 96, 400, 2023)),
    # NVIDIA data sheets "A100", "A40", "A30", "A10", "A16/A2", and AWS "EC2 G5" for A10G.
    (r"a[18]00.*pcie.*80(gb)?\b|a[18]00.*80(gb)?\b.*pcie", _sheet("A100-PCIe-80GB", 312, 156, 1935, 80, 300, 2021)),
    (r"a[18]00.*pcie", _sheet("A100-PCIe-40GB", 312, 156, 1555, 40, 250, 2020)),
    (r"a100.*40(gb)?\b", _sheet("A100-SXM-40GB", 312, 156, 1555, 40, 400, 2020)),
    (r"a[18]00", _sheet("A100-SXM-80GB", 312, 156, 2039, 80, 400, 2020)),
    (r"\ba40\b", _sheet("A40", 149.7, 74.8, 696, 48, 300, 2020)),
    (r"\ba30\b", _sheet("A30", 165, 82, 933, 24, 165, 2021)),
    (r"\ba10g\b", _sheet("A10G", 70, 35, 600, 24, 300, 2021)),
    (r"\ba10\b", _sheet("A10", 125, 62.5, 600, 24, 150, 2021)),
    (r"\ba2\b", _sheet("A2", 18, 9, 200, 16, 60, 2021)),
    # NVIDIA data sheets "L40S", "L40", "L4".
    (r"\bl40s\b", _sheet("L40S", 362, 183, 864, 48, 350, 2023)),
    (r"\bl40\b", _sheet("L40", 181, 90.5, 864, 48, 300, 2022)),
    (r"\bl4\b", _sheet("L4", 121, 60, 300, 24, 72, 2023)),
    # NVIDIA data sheets "V100" (SXM3: DGX-2), "V100S", "P100", "T4"; P100 and T4 have no TF32.
    (r"v100.*sxm3", _sheet("V100-SXM3", 125, 15.7, 981, 32, 350, 2018)),
    (r"v100s", _sheet("V100S-PCIe", 130, 16.4, 1134, 32, 250, 2019)),
    (r"v100.*pcie", _sheet("V100-PCIe", 112, 14, 900, 16, 250, 2017)),
    (r"v100.*32(gb)?\b", _sheet("V100-SXM2-32GB", 125, 15.7, 900, 32, 300, 2018)),
    (r"v100", _sheet("V100-SXM2", 125, 15.7, 900, 16, 300, 2017)),
    (r"p100.*sxm2?", _sheet("P100-SXM2", 21.2, 10.6, 732, 16, 300, 2016)),
    (r"p100", _sheet("P100-PCIe", 18.7, 9.3, 732, 16, 250, 2016)),
    (r"\bt4\b", _sheet("T4", 65, 8.1, 320, 16, 70, 2018)),
    # NVIDIA "Ada", "Ampere GA102" and "Turing" architecture white papers: 16-bit products added up in 32 bit, dense.
    (r"rtx (pro )?6000 ada", _sheet("RTX-6000-Ada", 364.2, 182.1, 960, 48, 300, 2022)),
    (r"rtx 5090", _sheet("RTX5090", 209.5, 104.8, 1792, 32, 575, 2025)),
    (r"rtx 4090", _sheet("RTX4090", 165.2, 82.6, 1008, 24, 450, 2022)),
    (r"rtx 3090", _sheet("RTX3090", 71, 35.6, 936, 24, 350, 2020)),
    (r"rtx 3080", _sheet("RTX3080", 59.5, 29.8, 760, 10, 320, 2020)),
    (r"rtx 2080 ti", _sheet("RTX2080Ti", 53.8, 13.4, 616, 11, 250, 2018)),
    (r"rtx a6000", _sheet("RTX-A6000", 154.8, 77.4, 768, 48, 300, 2020)),
    (r"rtx a5000", _sheet("RTX-A5000", 111.1, 55.6, 768, 24, 230, 2021)),
    (r"(rtx )?\ba4000\b", _sheet("RTX-A4000", 76.7, 38.3, 448, 16, 140, 2021)),
    (r"rtx 5000", _sheet("QuadroRTX5000", 89.2, 11.2, 448, 16, 265, 2018)),
    (r"rtx 6000", _sheet("QuadroRTX6000", 130.5, 16.3, 672, 24, 295, 2018)),
    # AMD data sheets "Instinct MI355X" ... "MI50", "Radeon RX 7900 XTX", "Radeon PRO W7800", "W6600".
    (r"mi355x?", _sheet("MI355X", 2516, 157.3, 8000, 288, 1400, 2025)),
    (r"mi325x?", _sheet("MI325X", 1307.4, 653.7, 6000, 256, 1000, 2024)),
    (r"mi300a", _sheet("MI300A", 980.6, 490.3, 5300, 128, 550, 2023)),
    (r"mi300x?", _sheet("MI300X", 1307.4, 653.7, 5300, 192, 750, 2023)),
    (r"mi250x", _sheet("MI250X", 383, 95.7, 3277, 128, 560, 2021)),
    (r"mi250", _sheet("MI250", 362.1, 90.5, 3277, 128, 560, 2021)),
    (r"mi210", _sheet("MI210", 181, 45.3, 1638, 64, 300, 2022)),
    (r"mi100", _sheet("MI100", 184.6, 46.1, 1229, 32, 300, 2020)),
    (r"mi50", _sheet("MI50", 26.5, 13.3, 1024, 16, 300, 2018)),
    (r"rx 7900 ?xtx", _sheet("RX7900XTX", 122.8, 61.4, 960, 24, 355, 2022)),
    (r"w7800", _sheet("W7800", 90.5, 45.2, 576, 32, 260, 2023)),
    (r"w6600", _sheet("W6600", 20.8, 10.4, 224, 8, 100, 2021)),
    # Google Cloud's pages on each TPU; TDP of v2 and v3, highest power of v4: Jouppi et al. 2020 and 2023. A chip each.
    (r"tpu ?v?7|ironwood", _sheet("TPUv7", 2307, 2307, 7380, 192, UNPUBLISHED, 2025)),
    (r"tpu ?v?6|trillium", _sheet("TPUv6e", 918, 918, 1640, 32, UNPUBLISHED, 2024)),
    (r"tpu ?v?5p", _sheet("TPUv5p", 459, 459, 2765, 95, UNPUBLISHED, 2023)),
    (r"tpu ?v?5", _sheet("TPUv5e", 197, 197, 819, 16, UNPUBLISHED, 2023)),
    (r"tpu ?v?4", _sheet("TPUv4", 275, 275, 1228, 32, 192, 2020)),
    (r"tpu ?v?3", _sheet("TPUv3", 123, 123, 900, 32, 450, 2018)),
    (r"tpu ?v?2", _sheet("TPUv2", 46, 46, 600, 16, 280, 2017)),
    # Intel data sheets "Gaudi 3", "Gaudi 2", and Habana's HL-205, which names no peak rate.
    (r"gaudi ?3|hl 3\d\d", _sheet("Gaudi3", 1835, 459, 3700, 128, 900, 2024)),
    (r"gaudi( r)? ?2|hl 2[2-9]\d", _sheet("Gaudi2", 432, 108, 2450, 96, 600, 2022)),
    (r"gaudi|hl 205|hls 1", _sheet("Gaudi", UNPUBLISHED, UNPUBLISHED, 1000, 32, 350, 2019)),
    # Intel data sheets "Data Center GPU Max": matrix engines, TF32.
    (r"(gpu )?max 1550|ponte vecchio", _sheet("Max1550", 832, 419, 3277, 128, 600, 2023)),
    (r"(gpu )?max 1100", _sheet("Max1100", 352, 176, 1229, 48, 300, 2023)),
    # Graphcore "IPU-M2000" and "Bow-2000" data sheets: a processor each; its memory is inside it.
    (r"\bbow\b", _sheet("IPU-Bow", 350, 87.5, 65000, 0.9, UNPUBLISHED, 2022)),
    (r"gc200|ipu", _sheet("IPU-GC200", 250, 62.5, 47500, 0.9, UNPUBLISHED, 2020)),
    # Huawei "Atlas 800 model 9000" (eight for 2.56 or 2.24 PFLOP/s) and the launch of Ascend 910 in 2019.
    (r"ascend ?910 premium", _sheet("Ascend910-Premium", 320, 16, 1200, 32, 310, 2020)),
    (r"ascend ?910 pro", _sheet("Ascend910-Pro", 280, 16, 1200, 32, 310, 2020)),
    (r"ascend ?910", _sheet("Ascend910", 256, 16, 1200, 32, 310, 2019)),
    # Processors: cores x lanes x 2 x units x base clock; AMX of Sapphire Rapids: 1024 bf16 products a core and cycle.
    (r"a64fx", _sheet("A64FX", 13.5, 6.76, 1024, 32, UNPUBLISHED, 2020)),  # Fujitsu FX1000, 2.2 GHz
    (r"phi.*7250", _sheet("XeonPhi-7250", 6.09, 6.09, 400, 16, 215, 2016)),  # MCDRAM
    (r"8480|sapphire rapids", _sheet("Xeon-8480+", 229.4, 7.17, 307, 4000, 350, 2023)),
    (r"8380h", _sheet("Xeon-8380H", 5.2, 5.2, 153.6, 4500, 250, 2020)),
    (r"8376h", _sheet("Xeon-8376H", 4.66, 4.66, 153.6, 4500, 205, 2020)),
    (r"8380\b", _sheet("Xeon-8380", 5.89, 5.89, 204.8, 6000, 270, 2021)),
    (r"(gold|xeon) 6148", _sheet("Xeon-6148", 3.07, 3.07, 128, 768, 150, 2017)),
    (r"epyc 9654", _sheet("EPYC-9654", 7.37, 7.37, 460.8, 6000, 360, 2022)),
    (r"epyc 7763", _sheet("EPYC-7763", 5.02, 5.02, 204.8, 4000, 280, 2021)),
    (r"epyc 7742", _sheet("EPYC-7742", 4.61, 4.61, 204.8, 4000, 225, 2019)),
)

_JOINED = re.compile(r"(rtx|rx|max)(?=\d)|rtx(?=a\d)|tpu(?=v)|7900(?=xtx)|2080(?=ti)")

DEVICES: tuple[Device, ...] = tuple(device for _, device in _SHEETS)


@lru_cache(maxsize=1024)  # few names recur, each tried against a hundred patterns
def device_named(text: str) -> Device | None:
    """Return the device that a system's description, a driver or a log names, None where none is recognised.

    Case, punctuation, makers and other text do not matter: `NVIDIA A100-SXM4-80GB (400W)`, `tpu-v4-128`.
    """
    words = re.sub(r"[^a-z0-9]+", " ", text.lower())
    apart = _JOINED.sub(r"\g<0> ", words).strip()
    for pattern, device in _SHEETS:
        if re.search(rf"(?<![0-9])(?:{pattern})(?![0-9])", apart):
            return device
    return None
