"""The real Prometheus, which scrapes the real node_exporter, sends to our real server."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.api.test_server import ended, serving
from tests.conftest import free_port
from tests.ingest.exposition.test_in_prometheus import fetched, running, soon
from tests.ingest.trees import recorded_tree
from tests.needs import program

from crosswind.data.store.store import Store

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ['127.0.0.1:{node}']}}]
remote_write:
  - url: {url}v1/ingest/prometheus
    queue_config: {{batch_send_deadline: 1s, max_samples_per_send: 10000}}
    metadata_config: {{send_interval: 1s}}
"""


def samples_in(series: list[Any]) -> Iterator[tuple[str, str, int, float]]:
    for timeseries in series:
        name = timeseries["metric"].pop("__name__")
        labels = json.dumps(dict(sorted(timeseries["metric"].items())), ensure_ascii=False, separators=(",", ":"))
        yield from (
            (name, labels, round(at * 1000) * 10**6, float(text)) for at, text in timeseries["values"] if text != "NaN"
        )


@pytest.mark.thorough
def test_what_it_sends_is_what_it_answers(tmp_path: Path) -> None:
    node, own = free_port(), free_port()
    exporter = (
        program("prometheus-node-exporter", "prometheus-node-exporter"),
        f"--path.procfs={recorded_tree('two_cores')}/proc",
        f"--path.sysfs={recorded_tree('two_cores')}/sys",
        f"--web.listen-address=127.0.0.1:{node}",
    )
    with Store.open(tmp_path / "home"):
        pass
    with serving(tmp_path / "home") as (url, process):
        (tmp_path / "prometheus.yml").write_text(CONFIG.format(node=node, url=url))
        arguments = (
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{own}",
        )
        api = f"http://127.0.0.1:{own}/api/v1"
        with running(*exporter), running(program("prometheus", "prometheus"), *arguments):
            soon(f"http://127.0.0.1:{own}/metrics", "prometheus_remote_storage_samples_total")
            soon(f"{api}/query?query={quote('count_over_time(node_load1[1m]) > 3')}", '"value"')
            time.sleep(3)  # for what is on its way
            everything = quote('{job="node"}[1m]')
            answer = json.loads(fetched(f"{api}/query?query={everything}"))
        assert ended(process, signal.SIGINT)
    answered = set(samples_in(answer["data"]["result"]))
    with Store.open(tmp_path / "home") as store:
        frame = store.lake.frame("select * from series order by ts_ns")
    stored = set(zip(frame["name"], frame["labels"], frame["ts_ns"], frame["value"], strict=True))
    assert len(stored) == len(frame)
    assert len(answered & stored) > 1000
    latest = max(time for *_, time, _ in answered) - 2_000_000_000
    assert {sample for sample in answered if sample[2] < latest} <= stored
    kinds = dict(zip(frame["name"], frame["kind"], strict=True))
    assert (kinds["node_load1"], kinds["node_cpu_seconds_total"]) == ("gauge", "counter")
    assert set(frame["node"]) == {"127.0.0.1"}
