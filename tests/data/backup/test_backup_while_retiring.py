"""Backups of a store that a server writes to, while another process compacts, rolls up and retires."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx2
from tests.api.segments import HEAT, headers_of
from tests.serving import answering

from crosswind.data.backup.store import back_up, check_lake, restore
from crosswind.data.lake.retention.upkeep import upkeep
from crosswind.data.lake.verification import verify
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.schema.series_question import SeriesQuestion, Statistic
from crosswind.data.store.metrics.series import series
from crosswind.data.store.store import Store
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

POLICY = "raw:1d,1h:forever"
DAY, HOUR = 86_400 * 10**9, 3600 * 10**9
START = 20_000 * DAY  # long ago, so that every day is due at once
SCALE = HEAT["heat_celsius"].scale
RETIRING = """
import sys, time
from crosswind.client.installed_store import open_store
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.retention.upkeep import upkeep
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.settings import Settings
with open_store(Settings.from_environment()) as store:
    while True:
        try:
            compact(store.lake, settle_seconds=0)
            done = upkeep(store.lake, KeepPolicy.of(sys.argv[1]))
            assert done.problems == [], done.problems
        except ConflictError:
            pass
        time.sleep(0.2)  # in which others may have their turn
"""


def segment(spool: Path, number: int) -> Path:
    """Return a segment with a sample of an hour of its own on a node."""
    with SpoolWriter(spool, "n1") as writer:
        columns = {"ts_ns": [START + number * HOUR], "node": ["n1"], "device": ["cpu0"], "heat_celsius": [number + 1]}
        writer.append_rows(HEAT, columns)
    return sealed_segments(spool)[-1]


def by_hour(store: Store, hours: int) -> Mapping[int, float]:
    """Return by hour the sum over its samples, which is the number of the hour + 1 where it is there once."""
    times = {"from_ns": START, "to_ns": START + (hours + 1) * HOUR, "step_seconds": 3600.0}
    wanted = (Statistic.MIN, Statistic.MAX, Statistic.SUM)
    question = SeriesQuestion(("heat.heat_celsius",), **times, statistics=wanted, by=())  # type: ignore[arg-type]
    answers = [one.values for one in series(store, question).series]
    assert all(values == answers[0] for values in answers)
    return {hour: round(value / SCALE, 6) for hour, value in enumerate(answers[0]) if value is not None}


def samples_of(store: Store) -> int:
    """Return how many samples raw rows and roll-ups of the hour stand for, before anything of a day comes late."""
    upkeep(store.lake, KeepPolicy.of(POLICY))
    rolled = store.lake.storage.parts("rollup_3600s_heat")
    files = store.lake.source("rollup_3600s_heat", rolled)
    sql = f"select sum(heat_celsius_count) from {files}"
    [(count,)] = store.lake.answer(lambda connection: connection.sql(sql).fetchall())
    return int(count)


def test_what_was_acknowledged_is_in_every_backup_once_whatever_was_retired_meanwhile(tmp_path: Path) -> None:
    home = tmp_path / "a"
    with Store.open(home) as store, answering(home) as url:
        backed_up_meanwhile(store, url, tmp_path, {"CROSSWIND_HOME": str(home)})


def backed_up_meanwhile(store: Store, url: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Check backups of a store that a server writes to, while a process with that environment retires its days."""
    is_over = threading.Event()
    acknowledged: list[int] = []

    def send() -> None:
        number = 0
        while not is_over.is_set():
            path = segment(folder / "spool", number)
            answer = httpx2.post(f"{url}v1/ingest/batches", content=path.read_bytes(), headers=headers_of(path))
            assert answer.status_code == 201
            acknowledged.append(number)
            path.unlink()
            number += 1

    retirer, sender = [sys.executable, "-c", RETIRING, POLICY], threading.Thread(target=send)
    with subprocess.Popen(retirer, env={**os.environ, **environment}) as retiring:
        sender.start()
        befores = []
        wait_until(lambda: any(name.endswith("-last.parquet") for name in store.lake.storage.names()))
        for number in range(3):
            befores.append(len(acknowledged))
            made(store, folder / f"{number}.tar")
        is_over.set()
        sender.join()
        assert retiring.poll() is None
        retiring.kill()
    for number, before in enumerate(befores):
        restore(folder / f"{number}.tar", folder / f"back{number}")
        assert check_lake(folder / f"back{number}") > 0
        with Store.open(folder / f"back{number}") as back:
            assert verify(back.lake).problems == []
            there = by_hour(back, len(acknowledged))
            assert there == {hour: hour + 1 for hour in range(len(there))}
            assert len(there) >= before > 0
            assert samples_of(back) == len(there)
            assert by_hour(back, len(acknowledged)) == there


def made(store: Store, path: Path) -> None:
    """Make a backup; the lake is changed all the time, so that it may have to be tried again."""
    while True:
        try:
            return back_up(store, path)
        except ConflictError:
            time.sleep(0.01)


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end, "nothing was retired for a minute"
        time.sleep(0.02)
