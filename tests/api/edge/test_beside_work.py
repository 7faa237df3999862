"""Health and ingest beside work that takes all processors, and work that nobody waits for."""

import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.api.conftest import START_NS, run
from tests.api.edge.attacker import Attacker, attacking, cpu_seconds
from tests.api.segments import headers_of, segment
from tests.serving import serving

from crosswind.api.workers import LISTS_AT_ONCE, Workers
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

RUNS, STEPS, RANKS = 60, 100, 4
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of so many runs that explaining one takes some time."""
    home = tmp_path_factory.mktemp("beside") / "home"
    with Store.open(home) as store:
        with store.catalog.write() as session:
            for number in range(RUNS):
                session.runs.merge(run(f"r{number}", number))
        store.lake.append("test", to_table(STEP, steps()))
    return home


def steps() -> dict[str, list[int | str | None]]:
    places = [(n, step, rank) for n in range(RUNS) for step in range(STEPS) for rank in range(RANKS)]
    milliseconds = [100 + 3 * (n % 5) + step % 7 for n, step, _ in places]
    return {
        "ts_ns": [START_NS + n * 60 * SECOND + step * SECOND // 4 for n, step, _ in places],
        "run_id": [f"r{n}" for n, _, _ in places],
        "rank": [rank for _, _, rank in places],
        "step": [step for _, step, _ in places],
        "duration_seconds": [ms * 1_000_000 for ms in milliseconds],
        "input_seconds": [5_000_000] * len(places),
        "compute_seconds": [(ms - 25) * 1_000_000 for ms in milliseconds],
        "comm_seconds": [20_000_000] * len(places),
        "checkpoint_seconds": [0] * len(places),
        "other_seconds": [0] * len(places),
        "minor_faults": [7] * len(places),
    }


@pytest.fixture
def attacker(home: Path) -> Iterator[tuple[Attacker, int]]:
    with serving(home, "--port", "0") as (url, process), attacking(url) as attacker:
        yield attacker, process.pid


EXPLAIN = "GET /v1/runs/r{}/explanation HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.host
def test_health_and_ingest_are_answered_beside_work(attacker: tuple[Attacker, int], tmp_path: Path) -> None:
    asking, _ = attacker
    assert asking.get("/v1/runs/r0/explanation")[0] == 200
    alone = waited(asking, tmp_path / "alone", first=0)
    ending = threading.Event()

    def work(number: int) -> None:
        while not ending.is_set():
            asking.ask(EXPLAIN.format(number % RUNS).encode())
            number += 16

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    health, ingest = waited(asking, tmp_path / "beside", first=1000)
    ending.set()
    for thread in threads:
        thread.join()
    assert health < max(0.05, 3 * alone[0])  # more only where the machine itself is slow
    assert ingest < max(0.05, 3 * alone[1])


def waited(asking: Attacker, folder: Path, *, first: int) -> tuple[float, float]:
    """Return the median seconds of an answer on health, and of storing a segment."""
    health = [asking.get("/healthz")[1] for _ in range(30)]
    url = f"http://{asking.address[0]}:{asking.address[1]}/"
    ingest = [sent(url, segment(folder, first=first + number * 10)) for number in range(15)]
    return statistics.median(health), statistics.median(ingest)


def sent(url: str, path: Path) -> float:
    began = time.perf_counter()
    answer = httpx2.post(f"{url}v1/ingest/batches", content=path.read_bytes(), headers=headers_of(path))
    assert answer.status_code == 201
    return time.perf_counter() - began


@pytest.mark.host
def test_who_has_gone_is_not_worked_for(attacker: tuple[Attacker, int]) -> None:
    asking, pid = attacker
    assert asking.get("/v1/runs/r0/explanation")[0] == 200
    before = cpu_seconds(pid)
    assert asking.get("/v1/runs/r1/explanation")[0] == 200
    one = cpu_seconds(pid) - before
    before = cpu_seconds(pid)
    for number in range(60):
        asking.send(EXPLAIN.format(number).encode())
    time.sleep(0.2)
    asking.close()
    time.sleep(0.5)
    assert asking.get("/v1/runs/r2/explanation")[0] == 200
    assert cpu_seconds(pid) - before < 15 * max(one, 0.05)


def test_few_are_computed_at_once_and_too_many_are_refused() -> None:
    inside, most, statuses = 0, 0, []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal inside, most
        inside, most = inside + 1, max(most, inside + 1)
        await anyio.sleep(0.05)
        inside -= 1

    async def receive() -> Message:
        raise AssertionError("nothing is read here")

    async def send(message: Message) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def ask_all(workers: Workers, *paths: str) -> None:
        async with anyio.create_task_group() as group:
            for path in paths:
                scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
                group.start_soon(workers, scope, receive, send)

    workers = Workers(app, at_once=2, waiting_max=3)
    anyio.run(ask_all, workers, *["/v1/weather"] * 9)
    assert (most, statuses) == (2, [503] * 4)
    most = 0
    kinds = [*["/v1/weather"] * 3, *["/v1/studies/a"] * 3, *["/v1/runs"] * 3]
    anyio.run(ask_all, Workers(app, at_once=2), "/healthz", *kinds)
    assert most == 5 + min(2, LISTS_AT_ONCE)


async def long_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for more in (True, False):
        await send({"type": "http.response.body", "body": b"x", "more_body": more})


def test_who_takes_in_a_long_answer_slowly_keeps_nobody_from_computing() -> None:
    """Check that readers who take in nothing hold no place, and get one again when they do."""

    async def receive() -> Message:
        raise AssertionError("nothing is read here")

    async def ask() -> None:
        reads = anyio.Event()

        async def send_slowly(message: Message) -> None:
            if message.get("more_body"):
                await reads.wait()

        async def send(_: Message) -> None: ...

        workers = Workers(long_answer, at_once=2)
        scope = {"type": "http", "method": "GET", "headers": [], "path": "/v1/runs/a/steps"}
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(workers, dict(scope), receive, send_slowly)
                await anyio.sleep(0.05)
                await workers(dict(scope), receive, send)
                reads.set()

    anyio.run(ask)
