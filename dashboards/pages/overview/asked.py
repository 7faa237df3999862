"""The question of a block: about which runs, of whom, when."""

from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.data.catalog.runs import RunFilter

HOUR_NS = 3_600_000_000_000
DAY_HOURS = 24


@dataclass(frozen=True)
class Asked:
    """The client of whoever asks, the runs that the page is about, and the time, ns UTC."""

    client: Local
    wanted: RunFilter
    now_ns: int

    @property
    def scope(self) -> Mapping[str, str | None]:
        """The parameters of addresses about the same runs."""
        return {"system": self.wanted.system, "workload": self.wanted.workload}
