"""The exposition against the real Prometheus, its promtool and the real node_exporter."""

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

import pytest
from tests.conftest import free_port
from tests.ingest.exposition.shown import of_sources
from tests.ingest.trees import recorded_tree
from tests.needs import program

from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.exposition.server import serve
from crosswind.ingest.exposition.text import OPEN_METRICS, render

SHARED = ["cpu", "memory", "network", "protocol", "disk", "pressure", "softnet"]
OPENER = build_opener(ProxyHandler({}))  # loopback needs no proxy
GROWTH_SECONDS = 30.0  # processor time and bytes may pass between the two looks
ALWAYS_THERE = (
    "node_memory_MemTotal_bytes",
    "node_cpu_seconds_total",
    "node_network_receive_bytes_total",
    "node_context_switches_total",
    "node_load1",
)


def fetched(url: str) -> str:
    with OPENER.open(url, timeout=10) as response:
        return str(response.read().decode())


def soon(url: str, wanted: str = "") -> str:
    """Return what a server that has just been started says, once it says what is wanted."""
    until = time.monotonic() + 60
    while True:
        try:
            if wanted in (said := fetched(url)):
                return said
        except URLError:
            said = "nothing"
        assert time.monotonic() < until, f"{url} does not say {wanted!r}, but {said[:500]}"
        time.sleep(0.2)


@contextmanager
def running(*command: str) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def parsed(text: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def types(text: str) -> dict[str, str]:
    return dict(line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE"))


@pytest.mark.parametrize(
    "tree", ["two_cores", "two_sockets", "fabric", "cray_ex", "nfs_client", "lustre_client", "slurm_v2"]
)
def test_promtool_has_nothing_to_say_but_about_names_that_node_exporter_chose(tree: str) -> None:
    names = [*SHARED, "rapl", "hwmon", "thermal", "frequency", "infiniband", "omnipath", "cxi", "pm_counters"]
    names += ["nfs", "lustre", "lustre_targets", "cgroup", "qdisc", "ethtool", "gpu", "filesystem"]
    text = render(of_sources(recorded_tree(tree), names))
    command = [program("promtool", "prometheus"), "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, check=False)
    said = checked.stderr.decode().splitlines()
    assert [line for line in said if not re.fullmatch(r"node_\S+ metric names should be written in .*", line)] == []


def test_names_labels_types_and_sizes_are_those_of_node_exporter() -> None:
    port = free_port()
    with running(
        program("prometheus-node-exporter", "prometheus-node-exporter"), f"--web.listen-address=127.0.0.1:{port}"
    ):
        theirs_text = soon(f"http://127.0.0.1:{port}/metrics", "node_load1")
    ours_text = render(of_sources(Path("/"), SHARED)).decode()
    ours, theirs = parsed(ours_text), parsed(theirs_text)
    both = {name for name in ours.keys() & theirs.keys() if name.startswith("node_")}
    for family in ALWAYS_THERE:
        assert {name for name in theirs if name.split("{")[0] == family} <= both, family
    assert len(both) > 60
    own_types, their_types = types(ours_text), types(theirs_text)
    families = {name.split("{")[0] for name in both}
    assert {name for name in families if own_types[name] != their_types[name]} == set()
    grown = {name for name in both if own_types[name.split("{")[0]] == "counter" and ours[name] < theirs[name] - 1}
    assert {name for name in grown if "idle" not in name and "iowait" not in name} == set()
    seconds = {name for name in both if "_seconds_total" in name}
    assert {name for name in seconds if abs(ours[name] - theirs[name]) > GROWTH_SECONDS} == set()
    assert ours["node_memory_MemTotal_bytes"] == theirs["node_memory_MemTotal_bytes"]
    disks = {name for name in both if name.startswith("node_disk_read_bytes_total")}
    assert {name for name in disks if ours[name] > theirs[name] + 2**30} == set()


@pytest.mark.parametrize(
    ("tree", "sources", "collectors", "samples"),
    [
        ("two_cores", SHARED, "cpu meminfo netdev diskstats loadavg pressure vmstat stat softnet netstat", 159),
        ("two_sockets", ["thermal"], "thermal_zone", 3),
        ("nfs_client", ["nfs"], "nfs", 19),
        ("fabric", ["infiniband"], "infiniband", 24),
    ],
)
def test_of_a_recorded_node_both_say_the_same(
    tree: str, sources: list[str], collectors: str, samples: int, tmp_path: Path
) -> None:
    root = tmp_path / tree
    shutil.copytree(recorded_tree(tree), root, symlinks=True)
    for folder in ("proc", "sys"):
        (root / folder).mkdir(exist_ok=True)
    ports = root / "sys/class/infiniband"
    for adapter in ports.iterdir() if ports.is_dir() else ():
        if adapter.name != "mlx5_0":  # one of them is too strange for node_exporter, which then shows none
            shutil.rmtree(adapter)
        else:
            for name in ("fw_ver", "board_id", "hca_type"):  # without which it does not believe in the adapter
                (adapter / name).write_text("text\n")
    port = free_port()
    command = (
        program("prometheus-node-exporter", "prometheus-node-exporter"),
        f"--path.procfs={root}/proc",
        f"--path.sysfs={root}/sys",
        f"--web.listen-address=127.0.0.1:{port}",
        "--no-collector.netdev.netlink",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in collectors.split()),
    )
    with running(*command):
        theirs = parsed(soon(f"http://127.0.0.1:{port}/metrics", "node_scrape_collector_success"))
    ours = parsed(render(of_sources(root, sources)).decode())
    both = {name for name in ours.keys() & theirs.keys() if name.startswith("node_")}
    assert {name: (ours[name], theirs[name]) for name in both if not isclose(ours[name], theirs[name])} == {}
    assert len(both) >= samples


def test_prometheus_scrapes_it_and_answers_queries(tmp_path: Path) -> None:
    latest: dict[str, LatestReading] = of_sources(recorded_tree("two_cores"), SHARED)
    stop, port, own = threading.Event(), free_port(), free_port()
    serve(f"127.0.0.1:{port}", lambda: latest, stop)
    (tmp_path / "prometheus.yml").write_text(
        "scrape_configs:\n"
        "  - job_name: crosswind\n"
        "    scrape_interval: 1s\n"
        f"    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
    )
    arguments = (
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{own}",
    )
    api = f"http://127.0.0.1:{own}/api/v1"

    def query(expression: str) -> list[dict[str, object]]:
        answer = json.loads(fetched(f"{api}/query?query={quote(expression)}"))
        series: list[dict[str, object]] = answer["data"]["result"]
        return series

    with running(program("prometheus", "prometheus"), *arguments):
        soon(f"{api}/query?query=node_memory_MemTotal_bytes", "MemTotal")
        [up] = query("up")
        assert up["value"][1] == "1"  # type: ignore[index]
        [memory] = query("node_memory_MemTotal_bytes")
        assert memory["value"][1] == "25276502016"  # type: ignore[index]
        [user] = query('node_cpu_seconds_total{cpu="0",mode="user"}')
        assert user["value"][1] == "486.15"  # type: ignore[index]
        sample_count = len([line for line in render(latest, OPEN_METRICS).splitlines() if not line.startswith(b"#")])
        [scraped] = query("scrape_samples_scraped")
        assert scraped["value"][1] == str(sample_count)  # type: ignore[index]
        types = json.loads(soon(f"{api}/metadata?metric=node_network_receive_bytes", "counter"))["data"]
        assert types["node_network_receive_bytes"][0]["type"] == "counter"
        del latest["memory"]
        soon(f"{api}/query?query=absent(node_memory_MemTotal_bytes)", '"value"')
    stop.set()
