"""Rows of devices that lie in spans of time, of many devices and spans at once.

Values are summed along each device once; a span's sum is the difference of two of these sums, at the places where it
begins and ends among the device's rows. So the cost is that of rows plus pairs, not of rows times spans.
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
class DeviceWindows:
    """Pairs of a place and a device that has rows there, arrays of shape (n_windows,).

    `order` sorts the rows by device and time: those from `first` to before `last` lie in a window. `place` is the
    number of its place, `device` the device's name.
    """

    order: Ints
    first: Ints
    last: Ints
    place: Ints
    device: pd.Series

    @classmethod
    def of(cls, rows: pa.Table, places: pd.DataFrame, *, by: Sequence[str] = ("node",)) -> "DeviceWindows":
        """Pair each place with its devices.

        rows: as `Lake.counters` reads them. places: `from_ns`, `until_ns` (exclusive), and the columns of `by`.
        """
        keys = [
            column.name for column in set_of(rows.schema).columns if column.kind is Kind.KEY and column.name != "ts_ns"
        ]
        number, times = numbered(rows, keys), rows["ts_ns"].to_numpy()
        order = np.lexsort((times, number))
        number, times = number[order], times[order]
        heads = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])
        devices = rows.select(["node", "device"]).take(pa.array(order[heads])).to_pandas()
        spans = places[[*by, "from_ns", "until_ns"]].assign(place=np.arange(len(places)))
        named = devices.assign(named=devices["device"], number=np.arange(len(heads)))
        windows = spans.merge(named[[*by, "named", "number"]], on=list(by))
        moments = np.unique(times)
        # One number for each device and time, in the order of the rows.
        of_device = windows["number"].to_numpy() * (len(moments) + 1)
        within = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(number))))
        keyed = within * (len(moments) + 1) + np.searchsorted(moments, times)
        first, last = (
            np.searchsorted(keyed, of_device + np.searchsorted(moments, windows[name].to_numpy()))
            for name in ("from_ns", "until_ns")
        )
        return cls(order, first, last, windows["place"].to_numpy(), windows["named"])

    def only(self, is_wanted: NDArray[np.bool_]) -> "DeviceWindows":
        """Return some of the windows; is_wanted: shape (n_windows,)."""
        parts = (self.first[is_wanted], self.last[is_wanted], self.place[is_wanted], self.device[is_wanted])
        return DeviceWindows(self.order, *parts)

    def sums(self, values: Floats, *, skipped: int = 0) -> Floats:
        """Return the sum of values over each window without its first `skipped` rows; missing values count as 0.

        values: shape (n_rows,), in the order of the rows as they were read.
        """
        sums = np.append(0.0, np.cumsum(np.nan_to_num(values)[self.order]))
        return np.asarray(sums[self.last] - sums[np.minimum(self.first + skipped, self.last)])
