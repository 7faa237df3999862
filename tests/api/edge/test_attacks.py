"""Attacks at full size on a server with its default limits: it answers everybody else, in bounded memory."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.api.edge.attacker import SEGMENT_HEAD, Attacker, attacking, resident_mb
from tests.api.segments import HEAT, headers_of, segment
from tests.serving import serving

from crosswind.data.lake.parts import DAY_NS
from crosswind.ingest.ship.zstd import zstd_module
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

MEMORY_MB = 600
PROMPT_SECONDS = 10.0  # on a busy machine; held up, it would be a minute
Server = tuple[str, "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("attacked"), "--port", "0") as (url, process):
        yield url, process


@pytest.fixture
def attacker(server: Server) -> Iterator[Attacker]:
    with attacking(server[0]) as attacker:
        yield attacker


def sent(url: str, path: Path, content: bytes | None = None, coding: str = "identity") -> tuple[int, float]:
    """Return the status of the answer to a segment, and the seconds that it took."""
    began = time.perf_counter()
    content = path.read_bytes() if content is None else content
    answer = httpx2.post(f"{url}v1/ingest/batches", content=content, headers=headers_of(path, coding), timeout=60)
    return answer.status_code, time.perf_counter() - began


def test_idle_connections_lock_nobody_out(server: Server, attacker: Attacker) -> None:
    for _ in range(1500):
        attacker.send(b"")
    for path in ("/healthz", "/v1/runs", "/readyz"):
        status, seconds = attacker.get(path)
        assert (status, seconds < PROMPT_SECONDS) == (200, True)


def test_slow_senders_hold_up_nobody(server: Server, attacker: Attacker, tmp_path: Path) -> None:
    before = unnamed_files(server[1].pid)  # what it has from pytest
    for _ in range(450):
        attacker.send(SEGMENT_HEAD + b"Content-Length: 2000001\r\n\r\n" + b"x" * 2_000_000)
    status, seconds = sent(server[0], segment(tmp_path))
    assert (status, seconds < PROMPT_SECONDS) == (201, True)
    assert attacker.get("/healthz")[1] < PROMPT_SECONDS
    assert resident_mb(server[1].pid, "VmHWM") < MEMORY_MB
    assert len(unnamed_files(server[1].pid)) > len(before)
    attacker.close()
    deadline = time.monotonic() + 10
    while unnamed_files(server[1].pid) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert unnamed_files(server[1].pid) == before


def unnamed_files(pid: int) -> list[str]:
    """Return the files that a process holds open and nobody else can see."""
    names = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            names.append(str(path.readlink()))
    return [name for name in names if name.startswith("/") and name.endswith("(deleted)")]


def test_a_small_segment_cannot_make_thousands_of_files(server: Server, tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "agent.n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [day * DAY_NS for day in range(4001)]})
    [path] = sealed_segments(tmp_path)
    status, seconds = sent(server[0], path)
    assert (status, seconds < PROMPT_SECONDS) == (422, True)


@pytest.mark.thorough
def test_segments_that_unpack_to_much_at_once_are_stored_in_bounded_memory(server: Server, tmp_path: Path) -> None:
    statuses: list[int] = []

    def send(number: int) -> None:
        path = large_segment(tmp_path / str(number), number)
        zstd = zstd_module()
        assert zstd is not None
        statuses.append(sent(server[0], path, zstd.compress(path.read_bytes()), "zstd")[0])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 6
    assert resident_mb(server[1].pid, "VmHWM") < MEMORY_MB


def large_segment(folder: Path, number: int) -> Path:
    """A segment of some 58 MB, which zstd packs into a fraction of that."""
    with SpoolWriter(folder, f"agent.n{number}") as writer:
        for frame in range(60):
            first = 1_767_323_045_000_000_000 + number * 10**9 + frame * 20_000
            times = list(range(first, first + 20_000))
            columns = {"ts_ns": times, "node": ["n" * 10] * 20_000, "device": ["cpu0"] * 20_000, "heat_celsius": times}
            writer.append_rows(HEAT, columns)
    path = max(sealed_segments(folder), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes() * 16)
    return path
