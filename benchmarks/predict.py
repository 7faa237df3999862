"""Predictions of runs to come: fitting, single answers over HTTP, a batch, and the command line through a server.

20 000 made-up runs of 400 cohorts. Beside them stands `GET /healthz` of the same server on the same connection: what a
request costs that asks for nothing. The two are also asked by several connections at once, the server on a core of its
own.
"""

import http.client
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.ingest import cpu_seconds, server
from benchmarks.saturated import answers_per_second, cores_apart, request
from crosswind.cli.verbs.models.actions import train
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

RUNS, WORKLOADS, SYSTEMS, SCALES, BATCHES = 20_000, 5, 4, (2, 4, 8, 16, 32), (8, 16, 32, 64)
OUTCOME = "run_seconds"
ASKED, MANY, ROUNDS = 2000, 10_000, 7
IDLE_SECONDS = 5.0
SATURATED_SECONDS = 2.0
SECOND_NS = 1_000_000_000
JSON = {"Content-Type": "application/json"}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        figures = {"fit_cpu_seconds": _fit(home)}
        with server(home) as (url, pid):
            connection = http.client.HTTPConnection(urlsplit(url).netloc)
            _until_idle(pid)
            figures |= _single(connection, pid)
            connection.close()  # the server would, before it is used again
            figures |= _saturated(urlsplit(url).port or 0, pid) | _batch(connection) | _command_line(url, home)
    for figure, value in figures.items():
        print(f"{figure:<44} {value}")
    print(json.dumps(figures | {"runs": RUNS, "machine": f"{platform.machine()}, Python {platform.python_version()}"}))


def made_up_runs() -> Iterator[Run]:
    """Runs that scale with 80 % efficiency a doubling, with 5 % noise."""
    rng = np.random.default_rng(0)
    for number in range(RUNS):
        workload, system = int(rng.integers(WORKLOADS)), int(rng.integers(SYSTEMS))
        ranks, batch = int(rng.choice(SCALES)), int(rng.choice(BATCHES))
        usual = 600 * (1 + workload) * (1 + 0.3 * system) * (ranks / 2) ** -0.68 * (batch / 8) ** -0.2
        started = (1_767_323_045 + 60 * number) * SECOND_NS
        ended = started + int(usual * np.exp(0.05 * rng.standard_normal()) * SECOND_NS)
        named = (f"r{number}", f"workload-{workload}", f"system-{system}", RunState.COMPLETED)
        yield Run(*named, world_size=ranks, configuration={"batch": batch}, started_ns=started, ended_ns=ended)


def _fit(home: Path) -> float:
    """Processor seconds to validate and fit the model of all runs, in this process."""
    with Store.open(home) as store:
        with store.catalog.write() as session:
            for run in made_up_runs():
                session.runs.merge(run)
        before = time.process_time()
        if train(store, OUTCOME):
            raise SystemExit("the model was not trained")
        return round(time.process_time() - before, 1)


def _asked(number: int) -> dict[str, object]:
    """A known cohort, another one each time."""
    place = {"workload": f"workload-{number % WORKLOADS}", "system": f"system-{number // 5 % SYSTEMS}"}
    configuration = {"batch": BATCHES[number // 20 % len(BATCHES)]}
    return {
        **place,
        "configuration": configuration,
        "world_size": SCALES[number // 80 % len(SCALES)],
        "outcome": OUTCOME,
    }


def _single(connection: http.client.HTTPConnection, pid: int) -> dict[str, float]:
    bodies = [json.dumps(_asked(number)).encode() for number in range(ASKED)]
    first = _timed(lambda: _post(connection, "/v1/predictions", bodies[0]))
    unheard = [json.dumps(_asked(number) | {"world_size": 3 + number}).encode() for number in range(200)]
    never = [_timed(partial(_post, connection, "/v1/predictions", body)) for body in unheard]
    busy = cpu_seconds(pid)
    seconds = [_timed(partial(_post, connection, "/v1/predictions", body)) for body in bodies]
    busy = (cpu_seconds(pid) - busy) / ASKED
    floor_busy = cpu_seconds(pid)
    floor = [_timed(lambda: _get(connection, "/healthz")) for _ in range(ASKED)]
    floor_busy = (cpu_seconds(pid) - floor_busy) / ASKED
    return {
        "first_answer_seconds": round(first, 2),
        "single_p50_milliseconds": _p50(seconds),
        "single_p99_milliseconds": round(float(np.quantile(seconds, 0.99)) * 1e3, 2),
        "single_never_asked_p50_milliseconds": _p50(never),
        "healthz_p50_milliseconds": _p50(floor),
        "answers_per_server_cpu_second": round(1 / busy),
        "healthz_per_server_cpu_second": round(1 / floor_busy),
    }


def _saturated(port: int, pid: int) -> dict[str, float]:
    """Return what one core answers, the two kinds in turn: what the machine's neighbours take of it changes."""
    asked = [request("POST", "/v1/predictions", json.dumps(_asked(number)).encode()) for number in range(ASKED)]
    kinds = {"answers": asked, "healthz": [request("GET", "/healthz")]}
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    with cores_apart(pid) as are_apart:
        for _ in range(ROUNDS if are_apart else 0):
            for name, requests in kinds.items():
                rates[name].append(answers_per_second(port, requests, SATURATED_SECONDS))
    return {f"{name}_per_second_on_one_core": round(statistics.median(turns)) for name, turns in rates.items() if turns}


def _until_idle(pid: int) -> None:
    """It trains what was never trained when it begins, beside answering."""
    while True:
        before = cpu_seconds(pid)
        time.sleep(IDLE_SECONDS)
        if cpu_seconds(pid) - before < 0.01 * IDLE_SECONDS:
            return


def _batch(connection: http.client.HTTPConnection) -> dict[str, float]:
    rng = np.random.default_rng(1)
    question = {"workload": "workload-1", "system": "system-1", "outcome": OUTCOME}
    repeats = question | {
        "world_size": rng.choice(SCALES, MANY).tolist(),
        "configuration": {"batch": rng.choice(BATCHES, MANY).tolist()},
    }
    others = question | {
        "world_size": rng.integers(2, 64, MANY).tolist(),
        "configuration": {"batch": rng.integers(8, 1000, MANY).tolist()},
    }
    return {
        f"batch_of_{MANY}_{name}_milliseconds": _p50(
            [_timed(partial(_post, connection, "/v1/predictions:batch", body)) for _ in range(ROUNDS)]
        )
        for name, body in (("repeats", json.dumps(repeats).encode()), ("newcomers", json.dumps(others).encode()))
    }


def _command_line(url: str, home: Path) -> dict[str, float]:
    """Median wall and least processor time of verbs: through the server, and by the model in the store."""
    run = ("--workload", "workload-1", "--system", "system-1", "--ranks", "8", "--config", "batch=16")
    crosswind = str(Path(sys.executable).with_name("crosswind"))
    commands = {
        "command_line_walltime": [crosswind, "walltime", *run, "--server", url, "--directive"],
        "command_line_predict_without_server": [crosswind, "predict", *run, "--outcome", "run"],
        "bare_interpreter": [sys.executable, "-c", "pass"],
    }
    # An installed package is compiled; without this each process would compile every module that it imports.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"CROSSWIND_HOME": str(home)}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, argv in commands.items():
            before = _children_cpu_seconds()
            wall = _timed(partial(subprocess.run, argv, check=True, capture_output=True, env=environment))
            took[name].append((wall, _children_cpu_seconds() - before))
    walls = {f"{name}_milliseconds": _p50([wall for wall, _ in turns]) for name, turns in took.items()}
    return walls | {
        f"{name}_cpu_milliseconds": round(min(cpu for _, cpu in turns) * 1e3) for name, turns in took.items()
    }


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _post(connection: http.client.HTTPConnection, path: str, body: bytes) -> None:
    connection.request("POST", path, body, JSON)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {content[:300]!r}")


def _get(connection: http.client.HTTPConnection, path: str) -> None:
    connection.request("GET", path)
    connection.getresponse().read()


def _timed(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def _p50(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1e3, 2)


if __name__ == "__main__":
    main()
