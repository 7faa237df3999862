"""Questions of `crosswind sync slurm`, and what it keeps; Slurm itself is a program that answers from a script."""

import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from crosswind.data.lake.locks import alone
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.load.slurm_poll import (
    LATE_SECONDS,
    OVERLAP_SECONDS,
    SOURCE,
    WINDOW_SECONDS,
    Poller,
    Sacct,
    delay_seconds,
)

HEADER = "JobIDRaw|State|Start|End|ElapsedRaw|NodeList|User|JobName\n"
NOW = int(time.time())


@dataclass
class Answers:
    """Accounts that are listed whenever their span touches what is asked about."""

    lines: list[str] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    fails_at: int | None = None

    def answer(self, start: int, end: int, into: Path) -> None:
        self.asked.append((start, end))
        if len(self.asked) == self.fails_at:
            raise UnavailableError("sacct: no answer in 600 s")
        into.write_text(HEADER + "".join(line for line in self.lines if touches(line, start, end)))


def touches(line: str, start: int, end: int) -> bool:
    begun, ended = line.split("|")[2:4]
    return int(begun) < end and (ended == "Unknown" or int(ended) >= start)


def job(number: int, begun: int, ended: int | None, state: str = "COMPLETED") -> str:
    end, elapsed = ("Unknown", NOW - begun) if ended is None else (ended, ended - begun)
    return f"{number}|{state}|{begun}|{end}|{elapsed}|n[1-2]|ada|train\n"


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was tested before took its time."""
    monkeypatch.setattr(sys.modules[__name__], "NOW", int(time.time()))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path)


def poller(store: Store, answers: Answers) -> Poller:
    return Poller(store, "alps", answers, pause_seconds=0)


def states(store: Store) -> list[tuple[str, str]]:
    rows = store.lake.frame("select job_id, state from job order by ts_ns")
    return list(rows.itertuples(index=False, name=None))


def reached(store: Store) -> int:
    with store.catalog.read() as session:
        return (session.positions.of(SOURCE, "alps") or 0) // 1_000_000_000


def test_the_first_look_goes_back_a_week_in_days(store: Store) -> None:
    answers = Answers([job(1, NOW - 400_000, NOW - 399_000)])
    polled = poller(store, answers).poll()
    spans = [end - start for start, end in answers.asked]
    assert spans[:7] == [WINDOW_SECONDS] * 7
    assert sum(spans) == pytest.approx(7 * 86_400, abs=60)
    assert [end for _, end in answers.asked[:-1]] == [start for start, _ in answers.asked[1:]]
    assert (polled.accounts, polled.changed) == (1, 1)
    [stored] = store.jobs.find(limit=9)
    assert (stored.system, stored.job_id, stored.user, stored.nodes) == ("alps", "1", "ada", ("n1", "n2"))


def test_the_next_look_begins_before_the_last_end_that_was_seen(store: Store) -> None:
    answers = Answers([job(1, NOW - 900, NOW - 600)])
    poller(store, answers).poll()
    assert reached(store) == NOW - 600 - OVERLAP_SECONDS
    answers.asked.clear()
    poller(store, answers).poll()
    assert answers.asked[0][0] == NOW - 600 - OVERLAP_SECONDS


def test_a_cluster_where_nothing_ends_is_queried_about_the_last_day(store: Store) -> None:
    poller(store, Answers()).poll()
    assert reached(store) == pytest.approx(NOW - LATE_SECONDS - OVERLAP_SECONDS, abs=60)


def test_asking_again_stores_only_what_changed(store: Store) -> None:
    answers = Answers([job(1, NOW - 900, NOW - 600), job(2, NOW - 800, None, "RUNNING")])
    assert poller(store, answers).poll().changed == 2
    answers.lines[1] = job(2, NOW - 900, None, "RUNNING").replace(str(NOW - 900), str(NOW - 800), 1)  # ran on
    second = poller(store, answers).poll()
    assert (second.accounts, second.changed) == (2, 0)
    answers.lines[1] = job(2, NOW - 800, NOW - 5, "FAILED")
    assert poller(store, answers).poll().changed == 1
    assert states(store) == [("1", "COMPLETED"), ("2", "RUNNING"), ("2", "FAILED")]


def test_a_job_that_is_listed_in_several_windows_is_stored_once(store: Store) -> None:
    answers = Answers([job(1, NOW - 4 * 86_400, None, "RUNNING")])
    assert poller(store, answers).poll().changed == 1
    assert states(store) == [("1", "RUNNING")]


def test_a_failed_query_keeps_earlier_answers_and_is_repeated(store: Store) -> None:
    answers = Answers([job(1, NOW - 7 * 86_400 + 100, NOW - 7 * 86_400 + 200), job(2, NOW - 90, NOW - 60)], fails_at=3)
    with pytest.raises(UnavailableError, match="no answer in 600 s"):
        poller(store, answers).poll()
    assert states(store) == [("1", "COMPLETED")]
    failed_at = answers.asked[-1][0]
    poller(store, answers).poll()
    assert answers.asked[3][0] <= failed_at
    assert states(store) == [("1", "COMPLETED"), ("2", "COMPLETED")]


def test_since_asks_again_from_there_and_forgets_nothing(store: Store) -> None:
    answers = Answers([job(1, NOW - 90, NOW - 60)])
    poller(store, answers).poll()
    before = reached(store)
    answers.asked.clear()
    assert poller(store, answers).poll(since_seconds=NOW - 3 * 86_400).changed == 0
    assert answers.asked[0][0] == NOW - 3 * 86_400
    assert reached(store) == before


def test_only_one_asks_at_a_time(store: Store) -> None:
    with alone(store.home / ".sync-slurm.lock") as is_alone:
        assert is_alone
        with pytest.raises(UnavailableError, match="another `crosswind sync slurm` of this store is at work"):
            poller(store, Answers()).poll()


def program(folder: Path, script: str) -> Sacct:
    path = folder / "sacct"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Sacct(str(path), timeout_seconds=5)


def test_sacct_is_queried_for_everybodys_jobs_of_the_span_in_utc(tmp_path: Path) -> None:
    program(tmp_path, 'echo "$TZ $SLURM_TIME_FORMAT $@"').answer(1_767_225_600, 1_767_312_000, tmp_path / "answer")
    words = (tmp_path / "answer").read_text().split()
    assert words[:2] == ["UTC", "%s"]
    assert {"--allusers", "--parsable2", "--noconvert"} < set(words)
    assert {"--starttime=2026-01-01T00:00:00", "--endtime=2026-01-02T00:00:00"} < set(words)
    assert "--duplicates" not in words


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo sacct: error: Unable to connect >&2; echo more >&2; exit 1",
            "exit code 1: sacct: error: Unable to connect",
        ),
        ("exit 3", "exit code 3: it said nothing"),
        ("kill -SEGV $$", "exit code -11"),
    ],
)
def test_a_sacct_that_fails_is_quoted(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(UnavailableError, match=said):
        program(tmp_path, script).answer(NOW - 60, NOW, tmp_path / "answer")


def test_a_sacct_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    slow = program(tmp_path, f"sleep 300 & echo $! > {tmp_path}/pid; wait")
    with pytest.raises(UnavailableError, match="no answer in 1 s"):
        Sacct(slow.program, timeout_seconds=1).answer(NOW - 60, NOW, tmp_path / "answer")
    child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 5
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_absent_sacct_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        UnavailableError, match=r"no such program: run this where Slurm's commands are.*crosswind ingest"
    ):
        Sacct(str(tmp_path / "sacct")).answer(NOW - 60, NOW, tmp_path / "answer")


def test_waits_grow_with_failures_up_to_an_hour_and_are_jittered() -> None:
    chance = random.Random(1)
    waits = [delay_seconds(60, failures, chance) for failures in (0, 1, 2, 3, 20, 500)]
    for wait, plain in zip(waits, (60, 120, 240, 480, 3600, 3600), strict=True):
        assert 0.9 * plain <= wait <= 1.1 * plain
        assert wait != plain
    assert 0.9 * 86_400 <= delay_seconds(86_400, 5, chance) <= 1.1 * 86_400
