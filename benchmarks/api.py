"""Cost of requests to a server of a large store: lists of runs, one run, an explanation, predictions by many at once.

`CROSSWIND_BENCH_RUNS` runs (20 000 unless it is set) with steps, features and verdicts, in SQLite. Beside them stands
`GET /healthz` of the same server: what a request costs that asks for nothing. CPU seconds are the server's.
"""

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from benchmarks.ingest import cpu_seconds, peak_bytes
from benchmarks.many_runs import computed, fill, run_id_of, run_of
from benchmarks.saturated import answers_per_second, request
from benchmarks.served import served
from crosswind.data.store.store import Store

RUNS = int(os.environ.get("CROSSWIND_BENCH_RUNS", "20000"))
ASKED = 200
FURTHER = 50  # parts of the list, of 500 runs each
CONNECTIONS = (1, 16, 64)
SECONDS = 5.0
IN_AN_HOUR = int(os.environ.get("CROSSWIND_BENCH_REQUESTS", "2000"))  # 36000 of a real hour
Paths = Iterator[str]


def main() -> None:
    kept = os.environ.get("CROSSWIND_BENCH_STORE")  # a folder that is filled once, and used again
    with tempfile.TemporaryDirectory() as name:
        home = Path(kept or Path(name) / "home")
        began = time.process_time()
        is_new = not (home / "catalog.sqlite").exists()
        with Store.open(home) as store:
            if is_new:
                fill(store, RUNS)
            _forget(store)
        figures: dict[str, float] = {"fill_cpu_seconds": round(time.process_time() - began, 1)} if is_new else {}
        with served(home) as (url, pid):
            figures |= _requests(url, pid) | _predictions(urlsplit(url).port or 0, pid) | _an_hour(url, pid)
    for figure, value in figures.items():
        print(f"{figure:<52} {value}")
    print(json.dumps(figures | {"runs": RUNS, "machine": f"{platform.machine()}, Python {platform.python_version()}"}))


def _forget(store: Store) -> None:
    """Have the explanations of some runs computed when they are asked for, and not before."""
    with store.catalog.write() as session:
        session.verdicts.want_again(_forgotten())
        for run_id in _forgotten():
            session.verdicts.give_up(run_id)


def _forgotten() -> list[str]:
    return [run_id_of(number) for number in computed(RUNS)[::4]]


def _requests(url: str, pid: int) -> dict[str, float]:
    newest = [run_id_of(number) for number in computed(RUNS)[1::2]]
    connection = HTTPConnection(urlsplit(url).netloc)
    deep = list(islice(_parts(connection), FURTHER))
    filters = [
        *({"workload": f"workload-{number}"} for number in range(5)),
        *({"system": "system-1"}, {"state": "failed"}, {"state": "running"}, {"job_id": "77"}, {"id_end": "0123"}),
        *({"workload": "workload-1", "system": "system-0"}, {"workload": "workload-1", "state": "completed"}),
    ]
    asked: Mapping[str, Paths] = {
        "healthz": cycle(["/healthz"]),
        "run_list": cycle(["/v1/runs"]),
        "run_list_filtered": cycle([f"/v1/runs?{urlencode(one)}" for one in filters]),
        "run_list_further_parts": cycle(deep),
        "one_run": cycle([f"/v1/runs/{run_id}" for run_id in newest]),
        "explanation_stored": cycle([f"/v1/runs/{run_id}/explanation" for run_id in newest]),
        "explanation_anew": iter([f"/v1/runs/{run_id}/explanation" for run_id in _forgotten()]),
    }
    figures: dict[str, float] = {}
    for name, paths in asked.items():
        _get(connection, next(paths))  # what is imported or connected for the first one
        figures |= _measured(name, lambda paths=paths: _get(connection, next(paths)), pid, _times(name))
    connection.close()
    return figures


def _parts(connection: HTTPConnection) -> Iterator[str]:
    """The addresses of the further parts of the list, one after the other."""
    path: str | None = "/v1/runs?limit=500"
    while path := json.loads(_get(connection, path))["next_url"]:
        yield path.replace("limit=500", "limit=50")


def _times(name: str) -> int:
    return min(ASKED, len(_forgotten()) - 1) if name == "explanation_anew" else ASKED


def _measured(name: str, ask: Callable[[], object], pid: int, times: int) -> dict[str, float]:
    busy, seconds = cpu_seconds(pid), []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - began)
    busy = cpu_seconds(pid) - busy
    return {
        f"{name}_p50_milliseconds": round(statistics.median(seconds) * 1e3, 2),
        f"{name}_p99_milliseconds": round(float(np.quantile(seconds, 0.99)) * 1e3, 2),
        f"{name}_cpu_milliseconds": round(busy / times * 1e3, 2),
    }


def _predictions(port: int, pid: int) -> dict[str, float]:
    """The same question, of the finest outcome, by several connections at once."""
    run = run_of(RUNS - 1)
    asked = {"workload": run.workload, "system": run.system, "world_size": run.world_size}
    body = json.dumps(asked | {"configuration": dict(run.configuration)}).encode()
    kinds = {"predictions": [request("POST", "/v1/predictions", body)], "healthz": [request("GET", "/healthz")]}
    figures = {"first_prediction_seconds": _first(port, body)}
    for connections in CONNECTIONS:
        for name, requests in kinds.items():
            busy, began = cpu_seconds(pid), time.perf_counter()
            rate = answers_per_second(port, requests, SECONDS, connections=connections)
            answered = rate * (time.perf_counter() - began)
            figures[f"{name}_per_cpu_second_at_{connections}"] = round(answered / (cpu_seconds(pid) - busy))
    ratio = figures[f"predictions_per_cpu_second_at_{CONNECTIONS[-1]}"] / figures["predictions_per_cpu_second_at_1"]
    return figures | {"predictions_at_64_over_at_1": round(ratio, 2)}


def _an_hour(url: str, pid: int) -> dict[str, float]:
    """Memory of the server after so many requests of every kind as it gets in an hour, one every tenth of a second."""
    body = json.dumps({"workload": "workload-1", "system": "system-0", "world_size": 2}).encode()
    newest = [run_id_of(number) for number in range(RUNS - RUNS // 2, RUNS)]
    connection = HTTPConnection(urlsplit(url).netloc)
    for number in range(IN_AN_HOUR):
        run_id = newest[number * 7919 % len(newest)]
        match number % 10:
            case 0:
                _get(connection, "/v1/runs?limit=200")
            case 1:
                _get(connection, f"/v1/runs/{run_id}/report")
            case 2:
                _get(connection, f"/v1/runs/{run_id}/steps")
            case 3 | 4:
                connection.request("POST", "/v1/predictions", body, {"Content-Type": "application/json"})
                connection.getresponse().read()
            case 5:
                _get(connection, f"/v1/runs/{run_id}/explanation")
            case 6:
                _get(connection, "/metrics")
            case _:
                _get(connection, f"/v1/runs/{run_id}")
    connection.close()
    return {"requests_in_an_hour": IN_AN_HOUR, "peak_megabytes_after_them": round(peak_bytes(pid) / 1e6)}


def _first(port: int, body: bytes) -> float:
    """Seconds until the first answer, for which a model is fitted."""
    began, connection = time.perf_counter(), HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/predictions", body, {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()
    return round(time.perf_counter() - began, 1)


def _get(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {content[:300]!r}")
    return content
