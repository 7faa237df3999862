"""Rates of counters and means of gauges during runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Column, Kind, MetricSet, with_node_keys
from crosswind.data.schema.run import Run, RunState, new_ulid
from crosswind.data.store.store import Store
from crosswind.models.counters.rates import counters_during

SECOND = 10**9
PORT = MetricSet(
    "port",
    "a port, for tests",
    (
        Column("receive_bytes_total", "bytes in", Kind.COUNTER, unit="bytes", scale=4.0, width_bits=32),
        Column("transmit_bytes_total", "bytes out", Kind.COUNTER, unit="bytes"),
        Column("drops_total", "packets lost", Kind.COUNTER, unit="1"),
        Column("backlog_bytes", "waiting", Kind.GAUGE, unit="bytes", scale=2.0),
        Column("mtu_bytes", "largest", Kind.FACT, unit="bytes"),
        Column("state", "as the kernel says", Kind.GAUGE, "string"),
    ),
)
Put = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def put(store: Store) -> Put:
    """Stores rows of one port at these seconds, raw."""

    def stored(seconds: list[int], *, node: str = "n1", device: str = "eth0", **columns: object) -> None:
        keys = {"ts_ns": [second * SECOND for second in seconds], "node": [node] * len(seconds)}
        keys |= {"device": [device] * len(seconds), "boot_id": [node] * len(seconds)}  # type: ignore[dict-item]
        table = to_table(with_node_keys(PORT), keys | columns)  # type: ignore[arg-type]
        store.lake.append(new_ulid(), table)

    return stored


def run(begin: int, end: int, *nodes: str) -> Run:
    times = {"started_ns": begin * SECOND, "ended_ns": end * SECOND, "nodes": nodes or ("n1",)}
    return Run(f"r{begin}", "w", "s", RunState.COMPLETED, **times)  # type: ignore[arg-type]


def rates_of(store: Store, *runs: Run) -> dict[str, list[float]]:
    return {shown.name: values.tolist() for shown, values in counters_during(store.lake, runs).items()}


def test_counters_are_rates_in_base_units_of_the_worst_node(store: Store, put: Put) -> None:
    put([0, 5, 10], drops_total=[100, 110, 120], receive_bytes_total=[0, 50, 100])
    put([0, 10], device="eth1", drops_total=[0, 10], receive_bytes_total=[2**32 - 10, 40])
    put([0, 10], node="n2", drops_total=[7, 17], receive_bytes_total=[0, 0])
    rates = rates_of(store, run(0, 11, "n1", "n2"))
    assert rates["port.drops_total[eth*] per second"] == [3.0]  # 2 + 1 a second on n1, 1 on n2
    assert rates["port.receive_bytes_total[eth*] per second"] == [4 * (10 + 5)]  # words of four bytes, one wrapped


def test_only_what_lies_within_the_run_counts(store: Store, put: Put) -> None:
    put([0, 10, 20, 30], drops_total=[0, 1000, 1010, 5000])
    assert rates_of(store, run(10, 21), run(5, 25))["port.drops_total[eth*] per second"] == [1.0, 1.0]


def test_a_run_that_was_sampled_for_less_than_half_is_missing_not_zero(store: Store, put: Put) -> None:
    put([0, 4], drops_total=[0, 8])
    rates = rates_of(store, run(0, 7), run(0, 20), run(100, 110))["port.drops_total[eth*] per second"]
    assert rates[0] == 2.0
    assert np.isnan(rates[1:]).all()


def test_a_column_that_was_never_there_is_no_column_and_a_gap_no_zero(store: Store, put: Put) -> None:
    put([0, 5, 10], drops_total=[0, None, 10])
    rates = rates_of(store, run(0, 11))
    assert list(rates) == ["port.drops_total[eth*] per second"]
    assert rates["port.drops_total[eth*] per second"] == [1.0]


def test_gauges_are_means_in_base_units_and_facts_and_texts_are_neither(store: Store, put: Put) -> None:
    put([0, 5], backlog_bytes=[10, None], mtu_bytes=[1500, 1500], state=["up", "up"])
    put([0, 5], node="n2", backlog_bytes=[30, 50])
    gauges = rates_of(store, run(0, 6, "n1", "n2"))
    assert gauges == {"port.backlog_bytes[eth*]": [2 * (10 + 40) / 2]}


def test_faults_come_by_byte_moved_too(store: Store, put: Put) -> None:
    put([0, 10], drops_total=[0, 20], receive_bytes_total=[0, 100], transmit_bytes_total=[0, 600])
    put([20, 30], drops_total=[20, 40], receive_bytes_total=[100, 100], transmit_bytes_total=[600, 600])
    rates = rates_of(store, run(0, 11), run(20, 31))["port.drops_total[eth*] per byte"]
    assert rates[0] == pytest.approx(20 / 1000)
    assert np.isnan(rates[1])


def test_devices_whose_names_hold_no_number_stay_apart(store: Store, put: Put) -> None:
    for number, device in enumerate(("lo", "eth0", "eth1", "eth0 8cf:")):
        put([0, 10], device=device, drops_total=[0, 10 * (number + 1)])
    names = [name.split("[")[1].split("]")[0] for name in rates_of(store, run(0, 11))]
    assert sorted(names) == ["eth*", "eth* *:", "lo"]


def test_an_empty_lake_shows_nothing(store: Store) -> None:
    assert rates_of(store, run(0, 11)) == {}
