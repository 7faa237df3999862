import shutil
import time
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Collector, Kind, OnFull
from crosswind.ingest.collectors import lustre, lustre_targets
from crosswind.ingest.collectors.lustre import LUSTRE
from crosswind.ingest.collectors.lustre_targets import LUSTRE_TARGETS
from crosswind.ingest.collectors.source import Host, Options

TREE = recorded_tree("lustre_client")
DEBUG = "sys/kernel/debug/lustre"
SCRATCH = "llite/scratch-ffff9440f1003000"


def of(root: Path) -> Collector:
    return lustre.SOURCE.make(Host(root), Options("lustre"))


def targets_of(root: Path) -> Collector:
    return lustre_targets.SOURCE.make(Host(root), Options("lustre_targets"))


def read(collector: Collector) -> dict[str, dict[str, object]]:
    return {sample.device: dict(sample.values) for sample in collector.read()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(TREE, tmp_path / "root")
    return tmp_path / "root"


def test_a_file_system_is_a_device_whatever_the_address_of_its_mount() -> None:
    assert set(read(of(TREE))) == {"scratch", "home"}


def test_bytes_are_sums_and_calls_are_counts() -> None:
    scratch = read(of(TREE))["scratch"]
    assert (scratch["read_bytes_total"], scratch["read_calls_total"]) == (145121869, 25673)
    assert (scratch["written_bytes_total"], scratch["write_calls_total"]) == (468230469, 13641)


def test_time_is_reported_in_microseconds() -> None:
    scratch = read(of(TREE))["scratch"]
    assert (scratch["open_calls_total"], scratch["open_seconds_total"]) == (13812423, 1027077752)
    assert scratch["read_seconds_total"] == 8834110
    assert LUSTRE["open_seconds_total"].scale == 1e-6


def test_what_was_never_done_is_missing() -> None:
    assert read(of(TREE))["home"] == {
        "instance": "ffff94406a1b8800",
        "measured_ns": 1689697369331093310,
        "cleared_ns": 1689610969118882017,
        "getattr_calls_total": 3,
        "getattr_seconds_total": 240,
    }


def test_counters_that_are_cleared_or_of_another_mount_are_another_epoch() -> None:
    assert (LUSTRE["cleared_ns"].kind, LUSTRE["instance"].kind) == (Kind.EPOCH, Kind.EPOCH)
    assert {column.on_full for column in LUSTRE.columns if column.kind is Kind.COUNTER} == {OnFull.RESET}


def test_versions_that_time_nothing_tell_counts_alone(tmp_path: Path) -> None:
    folder = tmp_path / "proc/fs/lustre/llite/work-ffff8104435c8c00"
    folder.mkdir(parents=True)
    (folder / "stats").write_text(
        "snapshot_time             1409777887.590578 secs.usecs\n"
        "read_bytes                27846475 samples [bytes] 4096 1048576 14421705314304\n"
        "open                      3735777 samples [regs]\n"
    )
    assert read(of(tmp_path)) == {
        "work": {
            "instance": "ffff8104435c8c00",
            "read_calls_total": 27846475,
            "read_bytes_total": 14421705314304,
            "open_calls_total": 3735777,
        }
    }


def test_one_file_system_mounted_twice_is_two_devices(root: Path) -> None:
    shutil.copytree(root / DEBUG / SCRATCH, root / DEBUG / "llite/scratch-ffff9440f1009000")
    assert set(read(of(root))) == {"scratch", "scratch-ffff9440f1009000", "home"}


def test_the_same_mount_in_two_places_is_one_device(root: Path) -> None:
    shutil.copytree(root / DEBUG, root / "proc/fs/lustre")
    assert set(read(of(root))) == {"scratch", "home"}


def test_a_folder_without_counters_is_none(root: Path) -> None:
    (root / "sys/fs/lustre" / SCRATCH).mkdir(parents=True)
    assert set(read(of(root))) == {"scratch", "home"}


def test_an_unmounted_file_system_is_gone_at_once_and_a_new_one_soon_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, llite = of(root), root / DEBUG / "llite"
    read(collector)
    (llite / "home-ffff94406a1b8800").rename(llite / "project-ffff94406a1b8800")
    assert set(read(collector)) == {"scratch"}
    assert set(read(collector)) == {"scratch", "project"}
    shutil.copytree(root / DEBUG / SCRATCH, llite / "archive-ffff94406a1b9900")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 11)
    assert set(read(collector)) == {"scratch", "project", "archive"}


@pytest.mark.parametrize(
    "line",
    [
        "open",
        "open -1 samples [usec] 1 1 -1 1",
        "open x samples [usec] 1 1 y 1",
        "read_bytes 99999999999999999999 samples [bytes] 1 1 99999999999999999999",
        "open 1 sample",
    ],
)
def test_a_line_that_makes_no_sense_is_left_out(root: Path, line: str) -> None:
    (root / DEBUG / SCRATCH / "stats").write_text(f"snapshot_time 1.000000002 secs.nsecs\n{line}\n")
    assert read(of(root))["scratch"] == {"instance": "ffff9440f1003000", "measured_ns": 1_000_000_002}


def test_a_garbled_file_hides_its_own_device_alone(root: Path) -> None:
    (root / DEBUG / SCRATCH / "stats").write_text("open 7 samples [usec] 1 1 1 1\n")
    assert set(read(of(root))) == {"home"}
    shutil.rmtree(root / DEBUG / "llite/home-ffff94406a1b8800")
    with pytest.raises(MalformedError, match="scratch-ffff9440f1003000/stats: expected a snapshot_time"):
        read(of(root))


def test_without_lustre_it_is_unavailable_and_says_where_it_looked(tmp_path: Path) -> None:
    assert not of(tmp_path).available()
    with pytest.raises(UnavailableError, match=r"proc/fs/lustre.*kernel/debug/lustre.*llite"):
        read(of(tmp_path))


def test_each_target_reports_requests_and_how_long_they_took() -> None:
    targets = read(targets_of(TREE))
    assert set(targets) == {"scratch-OST0000", "scratch-OST0001", "scratch-MDT0000"}
    values = targets["scratch-OST0000"]
    assert (values["request_calls_total"], values["request_seconds_total"]) == (393905757, 483362372205)
    assert (values["read_calls_total"], values["read_bytes_total"]) == (299768451, 6895163247966)
    assert targets["scratch-OST0001"] == {"instance": "ffff9440f1003000", "measured_ns": 1689697369331290101}
    assert targets["scratch-MDT0000"]["lock_seconds_total"] == 434824356
    assert LUSTRE_TARGETS["request_seconds_total"].scale == 1e-6


def test_targets_are_read_rarely_and_only_when_requested() -> None:
    assert (lustre_targets.SOURCE.is_default, lustre_targets.SOURCE.interval_seconds) == (False, 10.0)
