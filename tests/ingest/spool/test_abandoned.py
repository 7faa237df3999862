import errno
import os
import time
from pathlib import Path

import pytest

from crosswind.data.files import NoLocksError
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.ingest.load.load import without_locks
from crosswind.ingest.spool.abandoned import is_abandoned_in
from crosswind.ingest.spool.spool import SpoolWriter, recover, sealed_segments

LINK = MetricSet("link", "a link", (Column("ts_ns", "time", Kind.KEY),))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The mounts of a node to whom all of the test's folder is NFS."""
    path = tmp_path / "mountinfo"
    path.write_text(f"36 22 0:32 / {tmp_path} rw - nfs4 server:/home rw,local_lock=flock\n")
    return path


def test_where_the_file_system_is_unknown_it_may_be_shared(tmp_path: Path) -> None:
    assert not is_abandoned_in(tmp_path, "n1", tmp_path / "none")(left_open(tmp_path, "run-rank0"))


def left_open(spool: Path, origin: str, silent_seconds: float = 0.0) -> Path:
    """A file as a writer leaves it that dies, or that lives on a node whose locks are not seen here."""
    writer = SpoolWriter(spool, origin)
    writer.append_rows(LINK, {"ts_ns": [1, 2]})
    [path] = spool.glob(f"*.{origin}.open")
    os.close(writer._active.fd)  # type: ignore[union-attr]  # as the kernel closes a dead writer's
    moment = time.time() - silent_seconds
    os.utime(path, (moment, moment))
    return path


def test_on_a_shared_file_system_only_files_that_are_surely_abandoned_are_sealed(tmp_path: Path, shared: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    own = left_open(spool, "agent.n1")
    others = [left_open(spool, "agent.n2"), left_open(spool, "agent.n10"), left_open(spool, "run-rank0")]
    silent = left_open(spool, "run-rank1", silent_seconds=601)
    reports = recover(spool, is_abandoned_in(spool, "n1", shared))
    assert {report.path for report in reports} == {own.with_suffix(".segment"), silent.with_suffix(".segment")}
    assert sorted(spool.glob("*.open")) == sorted(others)


def test_a_living_writer_of_this_node_keeps_its_file_however_silent(tmp_path: Path, shared: Path) -> None:
    with SpoolWriter(tmp_path / "spool", "agent.n1") as writer:
        writer.append_rows(LINK, {"ts_ns": [1]})
        [path] = (tmp_path / "spool").glob("*.open")
        os.utime(path, (1, 1))
        assert recover(tmp_path / "spool", is_abandoned_in(tmp_path / "spool", "n1", shared)) == []
    assert len(sealed_segments(tmp_path / "spool")) == 1


def test_a_node_name_is_in_the_origin_as_the_agent_writes_it(tmp_path: Path, shared: Path) -> None:
    path = left_open(tmp_path, "agent.gpu_07")
    assert is_abandoned_in(tmp_path, "gpu/07", shared)(path)


def test_on_a_nodes_own_file_system_the_lock_alone_decides(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 8:2 / {tmp_path} rw - xfs /dev/sda2 rw\n")
    left_open(tmp_path, "run-rank0")
    assert len(recover(tmp_path, is_abandoned_in(tmp_path, "n1", mounts))) == 1


def test_a_file_that_was_sealed_meanwhile_is_not_abandoned(tmp_path: Path, shared: Path) -> None:
    assert not is_abandoned_in(tmp_path, "n1", shared)(tmp_path / "gone.run-rank0.open")


def test_a_file_system_without_locks_is_reported_with_what_to_do() -> None:
    message = without_locks(
        Path("/home/me/spool"), NoLocksError(errno.ENOLCK, "its file system keeps no locks (No locks available)")
    )
    assert message.startswith("spool /home/me/spool: its file system keeps no locks (No locks available): only sealed")
    assert "crosswind sync --to" in message
