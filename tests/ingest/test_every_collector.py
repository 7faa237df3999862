"""The promises that every collector keeps, over the explicit list."""

import os
import time
from pathlib import Path

import pytest

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.data.metric import DTYPES, NODE_KEYS, Collector, Kind, MetricSet, is_name
from crosswind.ingest.collectors import node_collectors

RECORDED = Path(__file__).parent / "recorded" / "two_cores" / "proc"
MAY_FALL = {"idle_seconds_total", "iowait_seconds_total"}  # the kernel corrects them downwards
BASE_UNITS = {"seconds", "bytes", "joules", "watts", "celsius", "hertz", "ratio"}


def collectors(proc: Path = Path("/proc"), pid: int | None = None) -> list[Collector]:
    return node_collectors(proc, pids=lambda: [pid or os.getpid()])


def of(name: str, proc: Path = Path("/proc"), pid: int | None = None) -> Collector:
    [found] = [collector for collector in collectors(proc, pid) if collector.metric_set.name == name]
    return found


NAMES = [collector.metric_set.name for collector in collectors()]
every_collector = pytest.mark.parametrize("name", NAMES)
every_live_collector = pytest.mark.parametrize("name", [name for name in NAMES if of(name).available()])


def test_the_five_sources_of_a_node_are_listed_once() -> None:
    assert sorted(NAMES) == ["cpu", "memory", "network", "pressure", "process"]


@every_collector
def test_the_set_is_well_named_and_leaves_the_keys_to_the_agent(name: str) -> None:
    metric_set = of(name).metric_set
    columns = {column.name for column in metric_set.columns}
    assert is_name(metric_set.name)
    assert columns.isdisjoint(key.name for key in NODE_KEYS)
    assert MetricSet.from_json(metric_set.as_json()) == metric_set


@every_collector
def test_a_column_ends_in_its_base_unit_and_a_counter_in_total(name: str) -> None:
    for column in of(name).metric_set.columns:
        assert column.name.endswith("_total") == (column.kind is Kind.COUNTER), column.name
        assert column.description, column.name
        assert column.unit == "" or column.unit in BASE_UNITS, column.name
        if column.unit:
            assert column.name.removesuffix("_total").endswith(column.unit), column.name


@every_live_collector
def test_every_value_has_a_column_and_its_type(name: str) -> None:
    collector = of(name)
    samples = list(collector.read())
    assert samples
    for sample in samples:
        for column_name, value in sample.values.items():
            column = collector.metric_set[column_name]
            assert type(value) in DTYPES[column.dtype], (sample.device, column_name, value)


@every_collector
def test_the_recorded_node_fills_every_column_somewhere(name: str) -> None:
    collector = of(name, RECORDED, 4242)
    filled = {column for sample in collector.read() for column in sample.values}
    assert filled == {column.name for column in collector.metric_set.columns}


@every_live_collector
def test_devices_are_told_apart(name: str) -> None:
    devices = [sample.device for sample in of(name).read()]
    assert len(devices) == len(set(devices))


@every_live_collector
def test_counters_do_not_fall_on_this_machine(name: str) -> None:
    collector = of(name)
    before = {sample.device: sample.values for sample in collector.read()}
    time.sleep(0.02)
    after = {sample.device: sample.values for sample in collector.read()}
    counters = {c.name for c in collector.metric_set.columns if c.kind is Kind.COUNTER} - MAY_FALL
    pairs = [
        (before[device][column], after[device][column])
        for device in before.keys() & after.keys()
        for column in counters & before[device].keys() & after[device].keys()
    ]
    assert pairs
    assert all(first <= second for first, second in pairs)  # type: ignore[operator]


def test_every_linux_has_all_but_perhaps_pressure() -> None:
    assert {"cpu", "memory", "network", "process"} <= {name for name in NAMES if of(name).available()}


@every_collector
def test_without_its_root_it_is_unavailable(name: str, tmp_path: Path) -> None:
    collector = of(name, tmp_path / "missing")
    assert not collector.available()
    with pytest.raises(UnavailableError, match="missing"):
        list(collector.read())


@every_collector
@pytest.mark.parametrize("content", [b"", b"\0" * 5000, os.urandom(5000), b"9" * 5000, b"a: 1\n" * 1000])
def test_garbage_is_malformed_and_never_a_value(name: str, content: bytes, tmp_path: Path) -> None:
    for recorded in RECORDED.rglob("*"):
        if recorded.is_file():
            path = tmp_path / recorded.relative_to(RECORDED)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    with pytest.raises(MalformedError, match=str(tmp_path)):
        list(of(name, tmp_path, 4242).read())


@every_collector
def test_a_file_without_end_is_refused_before_it_fills_the_memory(name: str, tmp_path: Path) -> None:
    for recorded in RECORDED.rglob("*"):
        if recorded.is_file():
            path = tmp_path / recorded.relative_to(RECORDED)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to("/dev/zero")
    with pytest.raises(MalformedError, match="at most"):
        list(of(name, tmp_path, 4242).read())
