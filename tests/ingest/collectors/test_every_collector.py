"""The promises that every collector keeps, over the explicit list."""

import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import DTYPES, NODE_KEYS, Collector, Kind, MetricSet, is_name
from crosswind.ingest.collectors import SOURCES, made
from crosswind.ingest.collectors.source import Host, Options

TREES = {  # the recorded root of each source that reads files; it fills every column of its set
    "cpu": "two_cores",
    "memory": "two_cores",
    "pressure": "two_cores",
    "network": "two_cores",
    "protocol": "two_cores",
    "process": "two_cores",
    "pm_counters": "cray_ex",
    "frequency": "two_sockets",
    "thermal": "two_sockets",
    "hwmon": "two_sockets",
    "rapl": "two_sockets",
    "disk": "two_cores",
    "softnet": "two_cores",
    "infiniband": "fabric",
    "omnipath": "fabric",
    "cxi": "fabric",
    "lustre": "lustre_client",
    "lustre_targets": "lustre_client",
    "nfs": "nfs_client",
    "cgroup": "slurm_v2",
}
# Sources that read no files: their own tests stand in test_<name>.py.
WITHOUT_TREE = {
    *(
        "amd_gpu",
        "ethtool",
        "facility",
        "filesystem",
        "gpu",
        "gpu_process",
        "ipmi",
        "occupancy",
        "perf",
        "qdisc",
        "redfish",
    ),
}
MAY_FALL = {"idle_seconds_total", "iowait_seconds_total"}  # the kernel corrects them downwards
BASE_UNITS = {
    *("seconds", "bytes", "joules", "watts", "celsius", "hertz", "ratio", "volts", "amperes", "meters_per_second"),
    *("bytes_per_second", "liters_per_second", "pascals", "cycles", "rpm"),
}


def of(name: str, root: Path = Path("/"), pid: int | None = None) -> Collector:
    [source] = [source for source in SOURCES if source.name == name]
    return made(source, Host(root, pids=lambda: [pid or os.getpid()]), Options(name))


def recorded(name: str) -> Collector:
    return of(name, recorded_tree(TREES[name]), 4242)


def garbled(name: str, root: Path, content: bytes | None) -> None:
    """The source's recorded tree with another content in every file, or /dev/zero behind each."""
    tree = recorded_tree(TREES[name])
    for file in tree.rglob("*"):
        path = root / file.relative_to(tree)
        if file.is_symlink():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(file.readlink())
        elif file.is_dir():
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to("/dev/zero") if content is None else path.write_bytes(content)


NAMES = [source.name for source in SOURCES]
LIVE = [name for name in NAMES if of(name).available()]
every_source = pytest.mark.parametrize("name", NAMES)
every_live_source = pytest.mark.parametrize("name", LIVE)
every_recorded_source = pytest.mark.parametrize("name", TREES)


def test_every_source_is_listed_once_and_has_a_recorded_tree_or_tests_of_its_own() -> None:
    assert [name for name, times in Counter(NAMES).items() if times > 1] == []
    assert set(NAMES) == set(TREES) | WITHOUT_TREE
    assert all(recorded_tree(tree).is_dir() for tree in TREES.values())


@every_source
def test_the_source_says_how_to_get_it(name: str) -> None:
    [source] = [source for source in SOURCES if source.name == name]
    assert is_name(source.name)
    assert source.advice
    assert source.timeout_seconds is None or source.timeout_seconds > 0


@every_source
def test_the_set_is_well_named_and_leaves_the_keys_to_the_agent(name: str) -> None:
    metric_set = of(name).metric_set
    columns = {column.name for column in metric_set.columns}
    assert is_name(metric_set.name)
    assert columns.isdisjoint(key.name for key in NODE_KEYS)
    assert MetricSet.from_json(metric_set.as_json()) == metric_set


@every_source
def test_a_column_ends_in_its_base_unit_and_a_counter_in_total(name: str) -> None:
    for column in of(name).metric_set.columns:
        assert column.name.endswith("_total") == (column.kind is Kind.COUNTER), column.name
        assert column.description, column.name
        assert column.unit == "" or column.unit in BASE_UNITS, column.name
        if column.unit:
            assert column.name.removesuffix("_total").endswith(column.unit), column.name


@every_source
def test_a_range_that_is_in_another_column_is_there(name: str) -> None:
    metric_set = of(name).metric_set
    for column in metric_set.columns:
        if column.range_from:
            assert metric_set[column.range_from].scale == column.scale


@every_live_source
def test_every_value_has_a_column_and_its_type(name: str) -> None:
    refuse_wrong_values(of(name))


@every_recorded_source
def test_every_recorded_value_has_a_column_and_its_type(name: str) -> None:
    assert refuse_wrong_values(recorded(name))


def refuse_wrong_values(collector: Collector) -> int:
    samples = list(collector.read())
    for sample in samples:
        for column_name, value in sample.values.items():
            column = collector.metric_set[column_name]
            assert type(value) in DTYPES[column.dtype], (sample.device, column_name, value)
    return len(samples)


@every_recorded_source
def test_the_recorded_node_fills_every_column_somewhere(name: str) -> None:
    collector = recorded(name)
    filled = {column for sample in collector.read() for column in sample.values}
    assert filled == {column.name for column in collector.metric_set.columns}


@every_recorded_source
def test_what_was_recorded_is_available(name: str) -> None:
    assert recorded(name).available()


@every_live_source
def test_devices_are_distinguished(name: str) -> None:
    devices = [key_of(of(name).metric_set, sample.device, sample.values) for sample in of(name).read()]
    assert len(devices) == len(set(devices))


@every_recorded_source
def test_recorded_devices_are_distinguished(name: str) -> None:
    collector = recorded(name)
    devices = [key_of(collector.metric_set, sample.device, sample.values) for sample in collector.read()]
    assert len(devices) == len(set(devices))


def key_of(metric_set: MetricSet, device: str, values: object) -> tuple[object, ...]:
    assert isinstance(values, dict)
    return (device, *(values.get(column.name) for column in metric_set.columns if column.kind is Kind.KEY))


@every_live_source
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
    assert all(first <= second for first, second in pairs)  # type: ignore[operator]


def test_every_linux_has_all_but_perhaps_pressure() -> None:
    assert {"cpu", "memory", "network", "process"} <= set(LIVE)


@every_recorded_source
def test_without_its_root_it_is_unavailable(name: str, tmp_path: Path) -> None:
    collector = of(name, tmp_path / "missing", 4242)
    assert not collector.available()
    with pytest.raises(UnavailableError, match="missing"):
        list(collector.read())


@every_recorded_source
def test_a_device_that_vanishes_is_gone_and_never_shown_as_it_was(name: str, tmp_path: Path) -> None:
    shutil.copytree(recorded_tree(TREES[name]), tmp_path / "tree", symlinks=True)
    collector = of(name, tmp_path / "tree", 4242)
    assert list(collector.read())
    shutil.rmtree(tmp_path / "tree")
    with pytest.raises(UnavailableError):
        list(collector.read())


@every_recorded_source
@pytest.mark.parametrize("content", [b"", b"\0" * 5000, os.urandom(5000), b"9" * 5000, b"a: 1\n" * 1000])
def test_garbage_is_never_a_value(name: str, content: bytes, tmp_path: Path) -> None:
    """A source refuses it by file name, or leaves the value out: never a number."""
    garbled(name, tmp_path, content)
    try:
        samples = list(of(name, tmp_path, 4242).read())
    except (MalformedError, UnavailableError) as error:
        assert str(tmp_path) in str(error)  # noqa: PT017 - one of two right outcomes
        return
    values = {value for sample in samples for value in sample.values.values()}
    assert [value for value in values if isinstance(value, int | float)] == []


@every_recorded_source
def test_a_file_without_end_is_refused_before_it_fills_the_memory(name: str, tmp_path: Path) -> None:
    garbled(name, tmp_path, None)
    try:
        samples = list(of(name, tmp_path, 4242).read())
    except (MalformedError, UnavailableError) as error:
        assert str(tmp_path) in str(error)  # noqa: PT017 - one of two right outcomes
        return
    assert not any(sample.values for sample in samples)
