import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.needs import ROOT, needs

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.spool.registration import (
    Announced,
    announce,
    announced,
    directories,
    require_alone,
    withdraw,
)


def test_an_announced_rank_is_found_until_it_withdraws(tmp_path: Path) -> None:
    rank = announce(tmp_path, run_id="r1", rank=3, node="n1")
    assert rank.pid == os.getpid()
    assert announced(tmp_path) == Announced((rank,), stale=0, garbled=0)
    withdraw(tmp_path)
    assert announced(tmp_path).ranks == ()
    withdraw(tmp_path)


def test_no_directory_means_no_ranks(tmp_path: Path) -> None:
    assert announced(tmp_path / "missing") == Announced((), 0, 0)


def test_the_file_of_an_ended_process_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        announce(tmp_path, run_id="r1", rank=0, node="n1", pid=child.pid)
        assert [rank.pid for rank in announced(tmp_path).ranks] == [child.pid]
        child.communicate(b"\n")
    assert announced(tmp_path) == Announced((), stale=1, garbled=0)
    assert list((tmp_path / "ranks").iterdir()) == []


def test_of_two_processes_of_one_rank_the_first_to_announce_itself_stays(tmp_path: Path) -> None:
    """Whichever of them began first: only one that announces itself later can see the other."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        for pids in ((os.getpid(), child.pid), (child.pid, os.getpid())):
            for pid in pids:
                announce(tmp_path, run_id="r1", rank=0, node="n1", pid=pid)
                time.sleep(0.02)  # clocks of files tick every few milliseconds
            if pids[0] == os.getpid():
                require_alone(tmp_path, "r1", 0)
            else:
                with pytest.raises(InvalidInputError, match=f"is process {child.pid} already: set RANK"):
                    require_alone(tmp_path, "r1", 0)
        child.communicate(b"\n")


def test_a_process_that_nobody_reaped_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        announce(tmp_path, run_id="r1", rank=0, node="n1", pid=child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert announced(tmp_path).ranks == ()


def test_a_pid_used_again_is_not_the_rank(tmp_path: Path) -> None:
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    [path] = (tmp_path / "ranks").iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"start_ticks": rank.start_ticks + 1}))
    assert announced(tmp_path) == Announced((), stale=1, garbled=0)


GOOD = {"run_id": "r1", "rank": 0, "node": "n1", "pid": 77, "start_ticks": 5}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"[" * 4000,
        b" " * 100_000 + b"{}",
        json.dumps(GOOD | {"rank": "0"}).encode(),
        json.dumps(GOOD | {"rank": True}).encode(),
        json.dumps(GOOD | {"rank": -1}).encode(),
        json.dumps(GOOD | {"pid": 78}).encode(),
        json.dumps(GOOD | {"run_id": "\ud800"}).encode(),
        json.dumps(GOOD | {"run_id": "r1\n"}).encode(),
        json.dumps(GOOD | {"run_id": ""}).encode(),
        json.dumps(GOOD | {"node": "n" * 201}).encode(),
        json.dumps(GOOD | {"node": "<n1>"}).encode(),
        json.dumps(GOOD | {"rank": 2**31}).encode(),
        json.dumps(GOOD | {"start_ticks": 2**63}).encode(),
        json.dumps(GOOD | {"extra": 1}).encode(),
        json.dumps({"run_id": "r1"}).encode(),
    ],
)
def test_a_garbled_file_is_skipped_and_counted(tmp_path: Path, content: bytes) -> None:
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    (tmp_path / "ranks" / "77.json").write_bytes(content)
    assert announced(tmp_path) == Announced((rank,), stale=0, garbled=1)


def test_an_impossible_rank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="rank -1"):
        announce(tmp_path, run_id="r1", rank=-1, node="n1")


def test_a_process_that_is_not_there_cannot_be_announced(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="4194305"):
        announce(tmp_path, run_id="r1", rank=0, node="n1", pid=4_194_305)  # above the kernel's largest pid


def test_a_directory_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="file"):
        announce(tmp_path / "file", run_id="r1", rank=0, node="n1")


def without_descriptors(action: Callable[[], object]) -> UnavailableError:
    """Return what an action raises while this process may open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(UnavailableError) as caught:
            action()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return caught.value


def test_with_nothing_left_to_open_files_with_no_rank_is_taken_for_ended(tmp_path: Path) -> None:
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    assert "Too many open files" in str(without_descriptors(lambda: announced(tmp_path)))
    assert announced(tmp_path) == Announced((rank,), stale=0, garbled=0)


def test_a_failed_announcement_leaves_nothing_behind(tmp_path: Path) -> None:
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    [path] = (tmp_path / "ranks").iterdir()
    path.unlink()
    path.mkdir()  # it cannot be replaced, as another user's file could not
    with pytest.raises(UnavailableError):
        announce(tmp_path, run_id="r1", rank=0, node="n1", pid=rank.pid)
    assert list((tmp_path / "ranks").iterdir()) == [path]


@needs(ROOT, "leaving a file of another user", unless=os.geteuid() == 0)
def test_what_another_user_left_under_the_same_pid_is_in_nobodys_way_and_cleared_away(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    left = folder / f"{os.getpid()}.7.json"
    left.write_text(json.dumps(GOOD | {"pid": os.getpid()}))
    os.chown(left, 65534, 65534)
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    withdraw(tmp_path)
    assert list(folder.iterdir()) == [left]
    announce(tmp_path, run_id="r1", rank=0, node="n1")
    assert announced(tmp_path) == Announced((rank,), stale=1, garbled=0)
    assert not left.exists()


def test_ranks_announce_themselves_to_the_nodes_own_agent_where_there_is_one(tmp_path: Path) -> None:
    spool, node = tmp_path / "spool", tmp_path / "node"
    environment = {"CROSSWIND_RUN_DIRECTORY": str(node)}
    assert directories(spool, environment) == [spool]
    (node / "ranks").mkdir(parents=True)
    assert directories(spool, environment) == [spool, node]
    assert directories(node, environment) == [node]


def test_an_agent_of_another_user_can_read_an_announcement(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        announce(tmp_path, run_id="r1", rank=0, node="n1")
    finally:
        os.umask(before)
    [path] = (tmp_path / "ranks").iterdir()
    assert path.stat().st_mode & 0o777 == 0o644


@needs(ROOT, "leaving a file of another user", unless=os.geteuid() == 0)
def test_an_announcement_of_somebody_elses_process_is_not_believed(tmp_path: Path) -> None:
    announce(tmp_path, run_id="r1", rank=0, node="n1")
    [path] = (tmp_path / "ranks").iterdir()
    os.chown(path, 65534, 65534)
    assert announced(tmp_path) == Announced((), stale=0, garbled=1)
    assert path.exists()


def test_a_link_or_a_pipe_is_no_announcement_and_nobody_waits_for_it(tmp_path: Path) -> None:
    announce(tmp_path, run_id="r1", rank=0, node="n1")
    [path] = (tmp_path / "ranks").iterdir()
    moved = path.rename(tmp_path / "elsewhere")
    path.symlink_to(moved)
    os.mkfifo(tmp_path / "ranks" / "1.json")
    assert announced(tmp_path) == Announced((), stale=0, garbled=2)
