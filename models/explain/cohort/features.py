"""Features of a run as the catalog keeps them: its condensed segments, and the node of each rank.

Bytes: the length of the header, the header (JSON), and the arrays as little-endian float64 one after the other, the
latter two packed with zlib. Whatever is added to a run's columns, or changes them, makes another FORM.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

import numpy as np

from crosswind.models.explain.causes import ENTRY_POINT_GROUP
from crosswind.models.explain.cohort.columns import OWN_COLUMNS
from crosswind.models.explain.cohort.own_segments import OwnSegments

VERSION = 1  # to be raised with every change of what columns hold
PLUG_INS = sorted(
    {f"{point.value} {point.dist.version}" for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist}
)
FORM = hashlib.sha256(json.dumps([VERSION, PLUG_INS, OWN_COLUMNS]).encode()).hexdigest()
LENGTH = struct.Struct("<I")
FLOAT = np.dtype("<f8")
ARRAYS = ("values", "culprits", "of_ranks")
LEVEL = 1  # of zlib: many values are the same, and more effort gains next to nothing


@dataclass(frozen=True)
class Features:
    """All that other runs of its cohort need of a run: condensed segments, and the nodes of its ranks by number."""

    segments: OwnSegments
    nodes: Mapping[int, str]

    def packed(self) -> bytes:
        """Return them as bytes."""
        own = self.segments
        facts = {"run_id": own.run_id, "samples": dict(own.samples), "count": own.count}
        pairs = {"work": sorted(own.work.items()), "nodes": sorted(self.nodes.items())}
        shapes = {name: getattr(own, name).shape for name in ARRAYS}
        header = json.dumps({**facts, **pairs, "shapes": shapes}).encode()
        numbers = b"".join(np.ascontiguousarray(getattr(own, name), FLOAT).tobytes() for name in ARRAYS)
        return LENGTH.pack(len(header)) + zlib.compress(header + numbers, LEVEL)


def unpacked(content: bytes) -> Features:
    """Return the features that were packed so."""
    (length,) = LENGTH.unpack_from(content)
    plain = zlib.decompress(memoryview(content)[LENGTH.size :])
    header, place, arrays = json.loads(plain[:length]), length, {}
    for name, shape in header["shapes"].items():
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(plain, FLOAT, count, place).reshape(shape)
        place += count * FLOAT.itemsize
    segments = OwnSegments(
        header["run_id"],
        **arrays,
        peers=np.empty((0, len(OWN_COLUMNS))),
        work={int(rank): float(seconds) for rank, seconds in header["work"]},
        samples=header["samples"],
        count=header["count"],
    )
    return Features(segments, {int(rank): str(node) for rank, node in header["nodes"]})
