"""A rate that is read from the samples of a run's nodes; docs/metrics.md has every column."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.models.conditions.reading import Over


@dataclass(frozen=True)
class Rate:
    """Growth a second of some counters of one metric set together, or the mean of a gauge, on the worst node.

    `over` names counters whose growth takes the place of the seconds; the SUM of devices is then the growth of all of
    them over that of all of these. `per` is a gauge of the row by which growth is divided. `device` is a name, or a
    prefix and %. `only` is SQL on the device and on raw columns, those of `asks`.
    """

    metric_set: str
    columns: tuple[str, ...]
    devices: Over = Over.MAX
    nodes: Over = Over.MAX
    over: tuple[str, ...] = ()
    per: str = ""
    device: str = "%"
    only: str = "true"
    asks: tuple[str, ...] = ()

    @property
    def is_gauge(self) -> bool:
        """Return whether its mean counts, and not its growth."""
        return not self.columns[0].endswith("_total")

    def is_of(self, devices: "pd.Series[str]") -> NDArray[np.bool_]:
        """Return which of these devices count."""
        prefix = self.device.removesuffix("%")
        return (devices.str.startswith(prefix) if prefix != self.device else devices == prefix).to_numpy(np.bool_)

    @property
    def needs(self) -> set[str]:
        """The columns that are read."""
        return {*self.columns, *self.over, *self.asks, *filter(None, [self.per])}
