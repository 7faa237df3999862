from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import MetricSet, with_node_keys
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store

SECOND = 10**9
Sampled = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def keep(store: Store) -> Callable[..., None]:
    """Stores runs."""

    def put(*runs: Run) -> None:
        with store.catalog.write() as session:
            for run in runs:
                session.runs.merge(run)

    return put


@pytest.fixture
def sample(store: Store) -> Sampled:
    """Stores a device's rows, one at each of these seconds; columns hold raw values."""

    def put(
        metric_set: MetricSet, seconds: Sequence[float], *, node: str = "n1", device: str = "cpu0", **columns: object
    ) -> None:
        times = [int(second * SECOND) for second in seconds]
        boot = columns.pop("boot_id", f"boot of {node}")
        keys = {"ts_ns": times, "mono_ns": times, "node": [node] * len(times), "device": [device] * len(times)}
        table = to_table(with_node_keys(metric_set), keys | {"boot_id": [boot] * len(times)} | columns)  # type: ignore[arg-type]
        store.lake.append(f"{metric_set.name}-{node}-{device}-{times[0]}".replace("/", "-"), table)

    return put
