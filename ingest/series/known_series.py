"""The series seen so far, with the place of each in the tables, worked out once."""

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import labels_text
from crosswind.data.schema.metric import Column, MetricSet
from crosswind.ingest.series.families import ENDS, Families
from crosswind.ingest.series.places import Place, place_of
from crosswind.ingest.series.series_text import parsed_series

Codes = NDArray[np.int32]
INSTANCE = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9][A-Za-z0-9._-]*))(?::[0-9]{1,5})?")
MOST_SERIES = 1_000_000  # some 1 GB; more than the Prometheus server of a large cluster has
MOST_FAMILIES = 100_000
LONGEST_TEXT = 16_384  # characters of a series as written
LONGEST_FAMILY = 1000  # characters of its name, and of its unit
WORDS = ("node", "device", "name", "labels", "kind", "unit")
NOWHERE = -1
FEW = 8  # of fewer than 1/8 of the series, only their texts are collected: series may come with each request


class KnownSeries:
    """Numbers of series, from 0, and by number their texts and places in the tables.

    A series with a place in a set of ours has a target, which is a number in `targets`, and a row, which is one in
    `rows`: node and device.
    """

    def __init__(self, node: str = "", families: Families | None = None) -> None:
        self.node = node
        self.families = families or Families()
        self.words: dict[str, list[str | None]] = {word: [] for word in WORDS}
        self.size_bytes = 0  # of all texts
        self.targets: dict[tuple[str, str], tuple[MetricSet, Column]] = {}
        self.rows: dict[tuple[str, str], int] = {}
        self._placed: dict[str, list[float]] = {"target": [], "row": [], "unit": [], "size": []}
        self._of_labels: dict[tuple[str, str, str], int] = {}
        self._of_text: dict[str, int] = {}
        self._named: dict[str, list[int]] = {}
        self._texts: dict[str, pa.Array] = {}
        self._numbers: dict[str, NDArray[np.float64]] = {}
        self._target_numbers: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._of_labels)

    def code(
        self,
        name: str,
        labels: Mapping[str, str],
        *,
        kind: str | None = None,
        unit: str | None = None,
        node: str | None = None,
    ) -> int:
        """Return the number of a series. Raises: MalformedError when there are too many."""
        node, text = node_of(name, labels) or self.node if node is None else node, labels_text(labels)
        size = len(self)
        code = self._of_labels.setdefault((node, name, text), size)
        if code == size:
            if size == MOST_SERIES:
                raise MalformedError(f"more than {MOST_SERIES} series; take fewer at once")
            kind_and_unit = kind or self.families.kind(name), unit or self.families.unit(name)
            for word, value in zip(WORDS, (node, labels.get("device", ""), name, text, *kind_and_unit), strict=True):
                self.words[word].append(value)
            self._named.setdefault(name, []).append(code)
            self._place(node, place_of(name, labels), sum(map(len, (node, name, text))))
            self._texts, self._numbers = {}, {}
        return code

    def code_of_text(self, text: str) -> int:
        """Return the number of the series with this text. Raises: MalformedError."""
        code = self._of_text.get(text)
        if code is None:
            if len(text) > LONGEST_TEXT:
                raise MalformedError(f"a series of {len(text)} characters; expected at most {LONGEST_TEXT}")
            if len(self._of_text) == MOST_SERIES:  # the same ones, written in more and more ways
                self._of_text.clear()
            code = self._of_text[text] = self.code(*parsed_series(text))
        return code

    def update_metadata(self, family: str, kind: str, unit: str) -> None:
        """Take metadata, which may come at any time, also for known series."""
        types, units = self.families.types, self.families.units
        if (types.get(family), units.get(family)) == (kind, unit) or len(types) > MOST_FAMILIES:
            return
        if max(len(family), len(unit)) > LONGEST_FAMILY:
            return
        types[family], units[family] = kind, unit
        for name in (family, *(family + end for end in ENDS)):
            for code in self._named.get(name, ()):
                self.words["kind"][code] = self.families.kind(name)
                self.words["unit"][code] = self.families.unit(name)
        self._texts = {}

    def named(self, name: str) -> list[int]:
        """Return the numbers of the series of this name."""
        return self._named.get(name, [])

    def _place(self, node: str, place: Place | None, size: int) -> None:
        target = row = NOWHERE
        if place is not None:
            key = place.metric_set.name, place.column.name
            self.targets.setdefault(key, (place.metric_set, place.column))
            target = self._target_numbers.setdefault(key, len(self._target_numbers))
            row = self.rows.setdefault((node, place.device), len(self.rows))
        self.size_bytes += size
        unit = place.unit if place else 1.0
        for name, number in (("target", target), ("row", row), ("unit", unit), ("size", size)):
            self._placed[name].append(number)

    def texts(self, word: str, codes: Codes) -> pa.Array:
        """Return a column of texts for these series."""
        if word not in self._texts and len(codes) * FEW < len(self):
            texts = self.words[word]
            return pa.array([texts[code] for code in codes.tolist()], pa.string())
        if word not in self._texts:
            self._texts[word] = pa.array(self.words[word], pa.string())
        return self._texts[word].take(pa.array(codes))

    def numbers(self, name: str, codes: Codes) -> NDArray[np.float64]:
        """Return target, row, unit or size of these series; target and row are -1 for a series without a place."""
        if name not in self._numbers and len(codes) * FEW < len(self):
            numbers = self._placed[name]
            return np.array([numbers[code] for code in codes.tolist()], np.float64)
        if name not in self._numbers:
            self._numbers[name] = np.array(self._placed[name], np.float64)
        return self._numbers[name][codes]


def node_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the host that a series names: DCGM's, or that of the instance; empty if it names none."""
    label = "Hostname" if name.startswith("DCGM_") and "Hostname" in labels else "instance"
    return host_in(labels.get(label, ""))


def host_in(text: str) -> str:
    """Return the host of `host`, `host:port` or `[address]:port`; empty when it is none of them."""
    match = INSTANCE.fullmatch(text)
    return (match[1] or match[2]) if match else ""
