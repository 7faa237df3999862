"""The dashboard for Grafana: each of its queries, with variables filled in as Grafana does, finds data at our routes.

Source: grafana.com/docs, "Variable syntax", and the Infinity plug-in's pages on URLs, columns and root selectors.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import MetricSet, Scalar, with_node_keys
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.collectors.cpu import CpuCollector
from crosswind.ingest.collectors.memory import MemoryCollector
from crosswind.ingest.collectors.network import NetworkCollector

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
DASHBOARD: Mapping[str, Any] = json.loads((GRAFANA / "dashboard.json").read_text())
SECOND = 1_000_000_000
NOW_NS = time.time_ns()
VARIABLE = re.compile(r"\$\{(\w+)(?::([\w:]+))?\}")
TIMES = {"__from": NOW_NS - 6 * 3600 * SECOND, "__to": NOW_NS}
RUNS, STEPS, RANKS = 24, 12, 2


def iso(ns: int) -> str:
    """Return a time as JavaScript's toISOString writes it."""
    return datetime.fromtimestamp(ns // SECOND, UTC).strftime(f"%Y-%m-%dT%H:%M:%S.{ns // 1_000_000 % 1000:03}Z")


def filled(text: str, values: Mapping[str, list[str]]) -> str:
    """Return a text with its variables as Grafana writes them; several values without a format make a glob."""

    def value(match: re.Match[str]) -> str:
        name, form = match[1], match[2]
        if name in TIMES:
            assert form == "date:iso"
            return iso(TIMES[name])
        chosen = values[name]
        if form == "csv":
            return ",".join(chosen)
        return chosen[0] if len(chosen) == 1 else "{" + ",".join(chosen) + "}"

    return VARIABLE.sub(value, text)


def rows_of(client: TestClient, query: Mapping[str, Any], values: Mapping[str, list[str]]) -> list[Mapping[str, Any]]:
    """Return what the plug-in makes of a query: the rows below the root selector, each with the columns."""
    assert (query["type"], query["source"], query["parser"]) == ("json", "url", "backend")
    assert query["url_options"]["method"] == "GET"
    parameters = {one["key"]: filled(one["value"], values) for one in query["url_options"]["params"]}
    answer = client.get(filled(query["url"], values), params=parameters)
    assert answer.status_code == 200, (query["url"], answer.text)
    rows = answer.json()[query["root_selector"]]
    return [
        {column["text"]: typed(row[column["selector"]], column["type"]) for column in query["columns"]} for row in rows
    ]


def typed(value: Any, kind: str) -> Any:
    """Return a value, checked against the type that the column declares; null is no value."""
    if value is None:
        return None
    if kind == "timestamp":
        return datetime.fromisoformat(value)
    assert isinstance(value, str if kind == "string" else int | float), (value, kind)
    return value


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with Store.open(tmp_path_factory.mktemp("grafana") / "store") as store:
        fill(store)
        yield own_client(create_app(store))


@pytest.fixture(scope="module")
def values(client: TestClient) -> dict[str, list[str]]:
    """Return the values of the variables, by the dashboard's queries, in its order: later ones need earlier ones."""
    chosen: dict[str, list[str]] = {}
    for variable in DASHBOARD["templating"]["list"]:
        rows = rows_of(client, variable["query"]["infinityQuery"], chosen)
        kept = re.compile(variable["regex"].strip("/") or ".*")
        names = [str(row["__value"]) for row in rows if kept.match(row["__text"])]
        chosen[variable["name"]] = names if variable["multi"] else names[:1]
    return chosen


def fill(store: Store) -> None:
    """Store runs of the last hours on two nodes, and what agents sampled there."""
    with store.catalog.write() as session:
        for number in range(RUNS):
            session.runs.merge(run(number))
            for rank in range(RANKS):
                session.ranks.merge(Rank(f"r{number:02}", rank, f"n{rank}", 100 + rank, begin(number)))
    places = [(number, step, rank) for number in range(RUNS) for step in range(STEPS) for rank in range(RANKS)]
    seconds = {"duration_seconds": 0.5, "input_seconds": 0.1, "compute_seconds": 0.3, "comm_seconds": 0.1}
    columns: dict[str, list[Scalar]] = {
        "ts_ns": [begin(number) + step * 5 * SECOND for number, step, _ in places],
        "run_id": [f"r{number:02}" for number, _, _ in places],
        "rank": [rank for *_, rank in places],
        "step": [step for _, step, _ in places],
        **{name: [int((value + 0.01 * rank) * SECOND) for *_, rank in places] for name, value in seconds.items()},
    }
    store.lake.append("steps", to_table(STEP, columns))
    growing = {"user_seconds_total": "cpu0", "available_bytes": "memory", "receive_bytes_total": "eth0"}
    sets = (CpuCollector.metric_set, MemoryCollector.metric_set, NetworkCollector.metric_set)
    for metric_set, (column, device) in zip(sets, growing.items(), strict=True):
        sample(store, metric_set, device, column)
    sample(store, AGENT, "agent", "missed_ticks_total")


def sample(store: Store, metric_set: MetricSet, device: str, column: str) -> None:
    """Store ten minutes of one column that grows, of two nodes."""
    keyed = with_node_keys(metric_set)
    times = [NOW_NS - (60 - number) * 10 * SECOND for number in range(60)]
    for node in ("n0", "n1"):
        keys = {"ts_ns": times, "mono_ns": times, "node": [node] * 60, "boot_id": ["b"] * 60, "device": [device] * 60}
        grown = [float(number) if keyed[column].dtype == "float64" else number for number in range(60)]
        store.lake.append(f"{metric_set.name}-{node}", to_table(keyed, {**keys, column: grown}))


def begin(number: int) -> int:
    return NOW_NS - (RUNS - number) * 120 * SECOND


def run(number: int) -> Run:
    facts = {"world_size": RANKS, "nodes": ("n0", "n1"), "started_ns": begin(number)}
    return Run(f"r{number:02}", "gpt", "lab", RunState.COMPLETED, ended_ns=begin(number) + 60 * SECOND, **facts)  # type: ignore[arg-type]


def test_variables_have_choices(values: Mapping[str, list[str]]) -> None:
    assert values["system"] == ["lab"]
    assert values["workload"] == ["gpt"]
    assert values["run"] == [f"r{RUNS - 1:02}"]
    assert values["node"] == ["n0", "n1"]
    assert values["metric"][0].partition(".")[0] not in ("step", "collective")


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_every_query_finds_data(client: TestClient, values: Mapping[str, list[str]], panel: Mapping[str, Any]) -> None:
    filled_in = {**values, "metric": ["memory.available_bytes"]}
    for query in panel["targets"]:
        rows = rows_of(client, query, filled_in)
        assert rows, panel["title"]
        for column in query["columns"]:
            if column["text"] not in ("missed", "lost", "of a core", "clock error", "step CoV"):
                assert any(row[column["text"]] is not None for row in rows), column
        if query["format"] == "timeseries":
            assert [column["type"] for column in query["columns"]] == ["timestamp", "string", "number"]
            assert {row["series"] for row in rows} != {""}


def test_a_time_without_samples_is_null_and_so_a_gap(client: TestClient, values: Mapping[str, list[str]]) -> None:
    panel = next(one for one in DASHBOARD["panels"] if one["title"] == "Memory that is left")
    rows = rows_of(client, panel["targets"][0], values)
    assert rows[0]["value"] is None
    assert panel["fieldConfig"]["defaults"]["custom"]["spanNulls"] is False


def test_every_variable_of_a_query_is_defined() -> None:
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | set(TIMES)
    used = {match[1] for match in VARIABLE.finditer((GRAFANA / "dashboard.json").read_text())}
    assert used - {"__field"} <= names


def test_data_source_and_dashboard_belong_together() -> None:
    source = yaml.safe_load((GRAFANA / "datasource.yaml").read_text())["datasources"][0]
    used = {(one["datasource"]["type"], one["datasource"]["uid"]) for one in DASHBOARD["panels"]}
    assert used == {(source["type"], source["uid"])}
    assert source["jsonData"]["allowedHosts"] == [source["url"]]  # without, the plug-in sends nothing
    assert source["jsonData"]["auth_method"] == "bearerToken"
    [provider] = yaml.safe_load((GRAFANA / "dashboards.yaml").read_text())["providers"]
    assert provider["type"] == "file"
    assert [panel["id"] for panel in DASHBOARD["panels"]] == list(range(1, len(DASHBOARD["panels"]) + 1))
