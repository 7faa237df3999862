"""The table of devices: peak figures by their makers' data sheets, and the names that systems give them."""

import re
from functools import lru_cache

from crosswind.data.devices.device import UNPUBLISHED, Device

NO = UNPUBLISHED
_Row = tuple[str, str, float, float, float, float, float, float, float, float, int]


def _of(source: str, *rows: _Row) -> tuple[tuple[str, Device], ...]:
    """Make devices of rows.

    Pattern, name, TFLOP/s in 16, 32, 8 and 4 bit, GB/s of memory, GB, GB/s of links in one direction, W, year.
    """
    return tuple((pattern, _device(source, name, *figures)) for pattern, name, *figures in rows)


def _device(source: str, name: str, *figures: float) -> Device:
    flops_16bit, flops_32bit, flops_8bit, flops_4bit, memory_rate, memory, link, watts, year = figures
    return Device(
        name,
        flops_16bit=flops_16bit * 1e12,
        flops_32bit=flops_32bit * 1e12,
        flops_8bit=flops_8bit * 1e12,
        flops_4bit=flops_4bit * 1e12,
        memory_bytes_per_second=memory_rate * 1e9,
        memory_bytes=memory * 1e9,
        link_bytes_per_second=link * 1e9,
        power_watts=watts,
        year=int(year),
        source=source,
    )


# Patterns are searched in the lower-case text, its words divided by single spaces; the first match decides, so special
# ones come before general ones: PCIe before SXM, which is the default. Links are NVLink, Infinity Fabric, ICI, Xe Link
# or Gaudi's Ethernet where a device has them, else PCI Express.
_SHEETS: tuple[tuple[str, Device], ...] = (
    *_of(
        "NVIDIA data sheets GB300 NVL72 and GB200 NVL72, a GPU each",
        (r"gb300", "GB300", 2500, 1250, 5000, 15000, 8000, 288, 900, 1400, 2025),
        (r"gb200|grace blackwell", "GB200", 2500, 1250, 5000, 10000, 8000, 186, 900, 1200, 2024),
    ),
    *_of(
        "NVIDIA data sheets HGX B300, B200 and B100, an eighth each; Blackwell architecture technical brief 2024",
        (r"b300", "B300", 2250, 1125, 4500, 13500, 8000, 288, 900, 1100, 2025),
        (r"b200|blackwell gpu", "B200", 2250, 1125, 4500, 9000, 8000, 180, 900, 1000, 2024),
        (r"b100", "B100", 1750, 875, 3500, 7000, 8000, 192, 900, 700, 2024),
    ),
    *_of(
        "NVIDIA data sheets GH200, H200, H100; H800 and H20 as announced for China",
        # 1000 W are those of the whole superchip, processor and memory included.
        (r"gh200.*(144|hbm3e)", "GH200-144GB", 989, 494, 1979, NO, 4900, 144, 450, 1000, 2024),
        (r"gh200|grace hopper", "GH200", 989, 494, 1979, NO, 4000, 96, 450, 1000, 2023),
        (r"h200.*(nvl|pcie)", "H200-NVL", 836, 418, 1671, NO, 4800, 141, 450, 600, 2024),
        (r"h200", "H200", 989, 494, 1979, NO, 4800, 141, 450, 700, 2024),
        (r"h100.*nvl", "H100-NVL", 836, 418, 1671, NO, 3900, 94, 300, 400, 2023),
        (r"h100.*pcie", "H100-PCIe", 756, 378, 1513, NO, 2039, 80, 300, 350, 2022),
        (r"h800", "H800", 989, 494, 1979, NO, 3350, 80, 200, 700, 2023),
        (r"h100", "H100-SXM", 989, 494, 1979, NO, 3350, 80, 450, 700, 2022),
        (r"\bh20\b", "H20", 148, 74, 296, NO, 4000, 96, 450, 400, 2023),
    ),
    *_of(
        "NVIDIA data sheets A100, A40, A30, A10, A2; AWS EC2 G5 for A10G",
        (r"a[18]00.*(pcie.*80(gb)?\b|80(gb)?\b.*pcie)", "A100-PCIe-80GB", 312, 156, NO, NO, 1935, 80, 300, 300, 2021),
        (r"a[18]00.*pcie", "A100-PCIe-40GB", 312, 156, NO, NO, 1555, 40, 300, 250, 2020),
        (r"a100.*40(gb)?\b", "A100-SXM-40GB", 312, 156, NO, NO, 1555, 40, 300, 400, 2020),
        (r"a800", "A800-SXM-80GB", 312, 156, NO, NO, 2039, 80, 200, 400, 2022),
        (r"a100", "A100-SXM-80GB", 312, 156, NO, NO, 2039, 80, 300, 400, 2020),
        (r"\ba40\b", "A40", 149.7, 74.8, NO, NO, 696, 48, 56.25, 300, 2020),
        (r"\ba30\b", "A30", 165, 82, NO, NO, 933, 24, 100, 165, 2021),
        (r"\ba10g\b", "A10G", 70, 35, NO, NO, 600, 24, 32, 300, 2021),
        (r"\ba10\b", "A10", 125, 62.5, NO, NO, 600, 24, 32, 150, 2021),
        (r"\ba2\b", "A2", 18, 9, NO, NO, 200, 16, 16, 60, 2021),
    ),
    *_of(
        "NVIDIA data sheets L40S, L40, L4",
        (r"\bl40s\b", "L40S", 362, 183, 733, NO, 864, 48, 32, 350, 2023),
        (r"\bl40\b", "L40", 181, 90.5, 362, NO, 864, 48, 32, 300, 2022),
        (r"\bl4\b", "L4", 121, 60, 242, NO, 300, 24, 32, 72, 2023),
    ),
    *_of(
        "NVIDIA data sheets V100 (SXM3: DGX-2), V100S, P100, T4; P100 and T4 have no TF32",
        (r"v100.*sxm3", "V100-SXM3", 125, 15.7, NO, NO, 981, 32, 150, 350, 2018),
        (r"v100s", "V100S-PCIe", 130, 16.4, NO, NO, 1134, 32, 16, 250, 2019),
        (r"v100.*pcie", "V100-PCIe", 112, 14, NO, NO, 900, 16, 16, 250, 2017),
        (r"v100.*32(gb)?\b", "V100-SXM2-32GB", 125, 15.7, NO, NO, 900, 32, 150, 300, 2018),
        (r"v100", "V100-SXM2", 125, 15.7, NO, NO, 900, 16, 150, 300, 2017),
        (r"p100.*sxm2?", "P100-SXM2", 21.2, 10.6, NO, NO, 732, 16, 80, 300, 2016),
        (r"p100", "P100-PCIe", 18.7, 9.3, NO, NO, 732, 16, 16, 250, 2016),
        (r"\bt4\b", "T4", 65, 8.1, NO, NO, 320, 16, 16, 70, 2018),
    ),
    *_of(
        # Products of 16 and 8 bit added up in 32 bit.
        "NVIDIA architecture white papers RTX Blackwell PRO, RTX Blackwell, Ada, Ampere GA102, Turing",
        (r"rtx pro 6000.*max q", "RTX-PRO-6000-Max-Q", 438.9, 219.5, 877.9, 1755.7, 1792, 96, 64, 300, 2025),
        (r"rtx pro 6000", "RTX-PRO-6000", 503.8, 251.9, 1007.6, 2015.2, 1792, 96, 64, 600, 2025),
        (r"rtx 6000 ada", "RTX-6000-Ada", 364.2, 182.1, 728.5, NO, 960, 48, 32, 300, 2022),
        (r"rtx 5090", "RTX5090", 209.5, 104.8, 419, 1676, 1792, 32, 64, 575, 2025),
        (r"rtx 4090", "RTX4090", 165.2, 82.6, 330.3, NO, 1008, 24, 32, 450, 2022),
        (r"rtx 3090", "RTX3090", 71, 35.6, NO, NO, 936, 24, 56.25, 350, 2020),
        (r"rtx 3080", "RTX3080", 59.5, 29.8, NO, NO, 760, 10, 32, 320, 2020),
        (r"rtx 2080 ti", "RTX2080Ti", 53.8, 13.4, NO, NO, 616, 11, 50, 250, 2018),
        (r"rtx a6000", "RTX-A6000", 154.8, 77.4, NO, NO, 768, 48, 56.25, 300, 2020),
        (r"rtx a5000", "RTX-A5000", 111.1, 55.6, NO, NO, 768, 24, 56.25, 230, 2021),
        (r"(rtx )?\ba4000\b", "RTX-A4000", 76.7, 38.3, NO, NO, 448, 16, 32, 140, 2021),
        (r"rtx 5000", "QuadroRTX5000", 89.2, 11.2, NO, NO, 448, 16, 25, 265, 2018),
        (r"rtx 6000", "QuadroRTX6000", 130.5, 16.3, NO, NO, 672, 24, 50, 295, 2018),
    ),
    *_of(
        "AMD data sheets Instinct MI355X to MI50; CDNA 3 white paper for links of MI300A",
        (r"mi355x?", "MI355X", 2516.6, 157.3, 5033.2, 10066.3, 8000, 288, 537.6, 1400, 2025),
        (r"mi350x?", "MI350X", 2306.9, 144.2, 4613.7, 9227.5, 8000, 288, 537.6, 1000, 2025),
        (r"mi325x?", "MI325X", 1307.4, 653.7, 2614.9, NO, 6000, 256, 448, 1000, 2024),
        (r"mi300a", "MI300A", 980.6, 490.3, 1961.2, NO, 5300, 128, 384, 550, 2023),
        (r"mi300x?", "MI300X", 1307.4, 653.7, 2614.9, NO, 5300, 192, 448, 750, 2023),
        (r"mi250x", "MI250X", 383, 95.7, NO, NO, 3277, 128, 400, 560, 2021),
        (r"mi250", "MI250", 362.1, 90.5, NO, NO, 3277, 128, 400, 560, 2021),
        (r"mi210", "MI210", 181, 45.3, NO, NO, 1638, 64, 150, 300, 2022),
        (r"mi100", "MI100", 184.6, 46.1, NO, NO, 1229, 32, 138, 300, 2020),
        (r"mi50", "MI50", 26.5, 13.3, NO, NO, 1024, 16, 92, 300, 2018),
    ),
    *_of(
        "AMD data sheets Radeon RX 7900 XTX, Radeon PRO W7800, W6600",
        (r"rx 7900 ?xtx", "RX7900XTX", 122.8, 61.4, NO, NO, 960, 24, 32, 355, 2022),
        (r"w7800", "W7800", 90.5, 45.2, NO, NO, 576, 32, 32, 260, 2023),
        (r"w6600", "W6600", 20.8, 10.4, NO, NO, 224, 8, 16, 100, 2021),
    ),
    *_of(
        "Google Cloud's page on each TPU; power of v2 to v4, links of v2 and v3: Jouppi et al. 2020, 2023; a chip each",
        (r"tpu ?v?7|ironwood", "TPUv7", 2307, 2307, 4614, NO, 7380, 192, 600, NO, 2025),
        (r"tpu ?v?6|trillium", "TPUv6e", 918, 918, NO, NO, 1640, 32, 448, NO, 2024),
        (r"tpu ?v?5p", "TPUv5p", 459, 459, NO, NO, 2765, 95, 600, NO, 2023),
        (r"tpu ?v?5", "TPUv5e", 197, 197, NO, NO, 819, 16, 200, NO, 2023),
        (r"tpu ?v?4", "TPUv4", 275, 275, NO, NO, 1228, 32, 300, 192, 2020),
        (r"tpu ?v?3", "TPUv3", 123, 123, NO, NO, 900, 32, 328, 450, 2018),
        (r"tpu ?v?2", "TPUv2", 46, 46, NO, NO, 600, 16, 248, 280, 2017),
    ),
    *_of(
        "Intel white papers Gaudi 3 and Gaudi 2; Habana's HL-205, which names no peak rate",
        (r"gaudi ?3|hl 3\d\d", "Gaudi3", 1835, 459, 1835, NO, 3700, 128, 600, 900, 2024),
        (r"gaudi( r)? ?2|hl 2[2-9]\d", "Gaudi2", 432, 108, 865, NO, 2450, 96, 300, 600, 2022),
        (r"gaudi|hl 205|hls 1", "Gaudi", NO, NO, NO, NO, 1000, 32, 125, 350, 2019),
    ),
    *_of(
        "Intel data sheets Data Center GPU Max: matrix engines, TF32",
        (r"(gpu )?max 1550|ponte vecchio", "Max1550", 832, 419, NO, NO, 3277, 128, 424, 600, 2023),
        (r"(gpu )?max 1100", "Max1100", 352, 176, NO, NO, 1229, 48, 159, 300, 2023),
    ),
    *_of(
        "Graphcore data sheets IPU-M2000 and Bow-2000: a processor each; its memory is inside it",
        (r"\bbow\b", "IPU-Bow", 350, 87.5, NO, NO, 65000, 0.9, 160, NO, 2022),
        (r"gc200|ipu", "IPU-GC200", 250, 62.5, NO, NO, 47500, 0.9, 160, NO, 2020),
    ),
    *_of(
        "Huawei Atlas 800 model 9000 (eight for 2.56 or 2.24 PFLOP/s) and the launch of Ascend 910 in 2019",
        (r"ascend ?910 premium", "Ascend910-Premium", 320, 16, NO, NO, 1200, 32, NO, 310, 2020),
        (r"ascend ?910 pro", "Ascend910-Pro", 280, 16, NO, NO, 1200, 32, NO, 310, 2020),
        (r"ascend ?910", "Ascend910", 256, 16, NO, NO, 1200, 32, NO, 310, 2019),
    ),
    *_of(
        # Cores x lanes x 2 x units x base clock; AMX of Sapphire Rapids: 1024 bf16 products a core and cycle.
        "Fujitsu FX1000 (A64FX at 2.2 GHz); Intel ARK and AMD's product pages; NVIDIA Grace CPU Superchip, half each",
        (r"a64fx", "A64FX", 13.5, 6.76, NO, NO, 1024, 32, NO, NO, 2020),
        (r"\bgrace\b", "Grace", 7.1, 7.1, NO, NO, 512, 480, NO, 250, 2023),
        (r"phi.*7250", "XeonPhi-7250", 6.09, 6.09, NO, NO, 400, 16, NO, 215, 2016),
        (r"8480|sapphire rapids", "Xeon-8480+", 229.4, 7.17, NO, NO, 307, 4000, NO, 350, 2023),
        (r"8380h", "Xeon-8380H", 5.2, 5.2, NO, NO, 153.6, 4500, NO, 250, 2020),
        (r"8376h", "Xeon-8376H", 4.66, 4.66, NO, NO, 153.6, 4500, NO, 205, 2020),
        (r"8380\b", "Xeon-8380", 5.89, 5.89, NO, NO, 204.8, 6000, NO, 270, 2021),
        (r"(gold|xeon) 6148", "Xeon-6148", 3.07, 3.07, NO, NO, 128, 768, NO, 150, 2017),
        (r"epyc 9654", "EPYC-9654", 7.37, 7.37, NO, NO, 460.8, 6000, NO, 360, 2022),
        (r"epyc 7763", "EPYC-7763", 5.02, 5.02, NO, NO, 204.8, 4000, NO, 280, 2021),
        (r"epyc 7742", "EPYC-7742", 4.61, 4.61, NO, NO, 204.8, 4000, NO, 225, 2019),
    ),
)

_JOINED = re.compile(
    r"(rtx|rx|max)(?=\d)|rtx(?=a\d)|tpu(?=v)|7900(?=xtx)|2080(?=ti)|(?<=x)\d+(?=[abhlptv]\d)"
)  # x8H100

DEVICES: tuple[Device, ...] = tuple(device for _, device in _SHEETS)


@lru_cache(maxsize=1024)  # few names recur, each tried against a hundred patterns
def device_named(text: str) -> Device | None:
    """Return the device that a system's description, a driver or a log names, None where none is recognised.

    Case, punctuation, makers and other text do not matter: `NVIDIA A100-SXM4-80GB (400W)`, `tpu-v4-128`.
    """
    words = re.sub(r"[^a-z0-9]+", " ", text.lower())
    if not words.strip():
        return None
    apart = _JOINED.sub(r"\g<0> ", words).strip()
    for pattern, device in _SHEETS:
        if re.search(rf"(?<![0-9])(?:{pattern})(?![0-9])", apart):
            return device
    return None
