"""The rows of devices that lie in spans of time, of many devices and spans at once.

What grows is summed along each device once; a span is the difference of two sums, found by where it begins and ends
among the device's rows. So the cost is that of the rows and of the pairs, not of rows times spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.lake.lake import set_of
from crosswind.data.lake.series import numbered
from crosswind.data.schema.metric import Kind
from crosswind.data.schema.prediction import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Pairs of a place and a device that is there, arrays of shape (n_cells,).

    `order` puts the rows device by device, each in the order of time: those from `first` to before `last` lie in a
    cell. `place` is the number of its place, `device` the device's name.
    """

    order: Ints
    first: Ints
    last: Ints
    place: Ints
    device: pd.Series

    @classmethod
    def of(cls, rows: pa.Table, places: pd.DataFrame, *, by: Sequence[str] = ("node",)) -> "Cells":
        """rows: as `Lake.counters` reads them. places: `from_ns`, `until_ns` (not of it), and what `by` names."""
        keys = [
            column.name for column in set_of(rows.schema).columns if column.kind is Kind.KEY and column.name != "ts_ns"
        ]
        number, times = numbered(rows, keys), rows["ts_ns"].to_numpy()
        order = np.lexsort((times, number))
        number, times = number[order], times[order]
        heads = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])
        devices = rows.select(["node", "device"]).take(pa.array(order[heads])).to_pandas()
        numbers = {"place": np.arange(len(places))}
        asked = places[[*by, "from_ns", "until_ns"]].assign(**numbers)
        named = devices.assign(named=devices["device"], number=np.arange(len(heads)))
        cells = asked.merge(named[[*by, "named", "number"]], on=list(by))
        moments = np.unique(times)
        # One number for each device and time, in the order of the rows.
        of_device = cells["number"].to_numpy() * (len(moments) + 1)
        within = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(number))))
        keyed = within * (len(moments) + 1) + np.searchsorted(moments, times)
        first, last = (
            np.searchsorted(keyed, of_device + np.searchsorted(moments, cells[name].to_numpy()))
            for name in ("from_ns", "until_ns")
        )
        return cls(order, first, last, cells["place"].to_numpy(), cells["named"])

    def only(self, is_wanted: NDArray[np.bool_]) -> "Cells":
        """Some of the cells."""
        parts = (self.first[is_wanted], self.last[is_wanted], self.place[is_wanted], self.device[is_wanted])
        return Cells(self.order, *parts)

    def sums(self, values: Floats, *, skipped: int = 0) -> Floats:
        """The sum of a row's values over each cell, but for so many of its first rows; missing ones count as nothing.

        values: shape (n_rows,), in the order of the rows as they were read.
        """
        sums = np.append(0.0, np.cumsum(np.nan_to_num(values)[self.order]))
        return np.asarray(sums[self.last] - sums[np.minimum(self.first + skipped, self.last)])
