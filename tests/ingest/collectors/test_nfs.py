import shutil
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import OnFull
from crosswind.ingest.collectors.nfs import NFS, NfsCollector

TREE = recorded_tree("nfs_client") / "proc"


def read(proc: Path) -> dict[str, dict[str, object]]:
    return {sample.device: dict(sample.values) for sample in NfsCollector(proc).read()}


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    shutil.copytree(TREE, tmp_path / "proc")
    return tmp_path / "proc"


def test_each_mount_is_a_device_and_so_is_the_node() -> None:
    mounts = read(TREE)
    assert list(mounts) == ["/home", "/data/my\\040set", "all"]
    assert (mounts["/home"]["server"], mounts["/home"]["version"]) == ("10.20.0.7:/export/home", "3")
    assert mounts["/data/my\\040set"]["version"] == "4.2"


def test_bytes_of_programs_and_of_the_server_are_distinguished() -> None:
    values = read(TREE)["/data/my\\040set"]
    names = ("read", "written", "direct_read", "direct_written", "server_read", "server_written")
    assert [values[f"{name}_bytes_total"] for name in names] == [
        *(2147487744, 717307904),
        *(2172592128, 17307904),
        *(2172592129, 2864795648),
    ]


def test_an_operation_reports_how_often_how_much_and_for_how_long() -> None:
    values = read(TREE)["/data/my\\040set"]
    assert {name.removeprefix("write_"): value for name, value in values.items() if name.startswith("write_")} == {
        "operations_total": 513,
        "transmissions_total": 516,
        "timeouts_total": 2,
        "sent_bytes_total": 121747828,
        "received_bytes_total": 97008,
        "queue_seconds_total": 260140,
        "round_trip_seconds_total": 5367,
        "execute_seconds_total": 265518,
        "errors_total": 3,
    }
    assert NFS["write_queue_seconds_total"].scale == 1e-3


def test_operations_with_similar_names_are_distinguished() -> None:
    assert read(TREE)["/data/my\\040set"]["open_operations_total"] == 916
    assert read(TREE)["/home"]["readdir_operations_total"] == 40


def test_events_that_slow_a_program_down_are_counted() -> None:
    values = read(TREE)["/data/my\\040set"]
    assert [values[name] for name in ("short_reads_total", "short_writes_total", "delays_total")] == [7, 8, 9]
    assert values["age_seconds"] == 3379


def test_a_time_that_fell_below_zero_in_the_kernel_is_missing() -> None:
    values = read(TREE)["/home"]
    assert "access_queue_seconds_total" not in values
    assert values["access_round_trip_seconds_total"] == 1667


def test_the_node_reports_its_calls_by_version() -> None:
    node = read(TREE)["all"]
    assert [node[f"rpc_{name}_total"] for name in ("calls", "retransmissions", "auth_refreshes")] == [
        *(386800393, 17, 386800410)
    ]
    v3 = ("getattr", "lookup", "access", "read", "write", "create", "readdir", "commit")
    assert [node[f"v3_{name}_calls_total"] for name in v3] == [164431, 16942, 2927, 1463225, 10927, 403, 40, 270]
    v4 = ("read", "write", "commit", "open", "close", "access", "getattr", "lookup")
    assert [node[f"v4_{name}_calls_total"] for name in v4] == [484, 513, 9, 916, 1921, 3268, 13920, 5109]


def test_counters_of_the_node_wrap_at_32_bits_and_those_of_a_mount_begin_with_it() -> None:
    assert (NFS["rpc_calls_total"].width_bits, NFS["rpc_calls_total"].on_full) == (32, OnFull.WRAP)
    assert (NFS["read_operations_total"].width_bits, NFS["read_operations_total"].on_full) == (64, OnFull.RESET)


def test_older_kernels_count_no_errors(proc: Path) -> None:
    mountstats = proc / "self/mountstats"
    mountstats.write_text(mountstats.read_text().replace("5367 265518 3", "5367 265518"))
    values = read(proc)["/data/my\\040set"]
    assert "write_errors_total" not in values
    assert values["write_execute_seconds_total"] == 265518


@pytest.mark.parametrize("missing", ["self/mountstats", "net/rpc/nfs"])
def test_either_file_is_enough(proc: Path, missing: str) -> None:
    (proc / missing).unlink()
    assert NfsCollector(proc).available()
    assert len(read(proc)) == (1 if missing == "self/mountstats" else 2)


def test_mounts_of_other_kinds_alone_are_unavailable(proc: Path) -> None:
    (proc / "net/rpc/nfs").unlink()
    (proc / "self/mountstats").write_text("device rootfs mounted on / with fstype rootfs\n")
    assert not NfsCollector(proc).available()
    with pytest.raises(UnavailableError, match="no NFS"):
        read(proc)


def test_the_mount_on_top_of_another_is_the_one_that_is_shown(proc: Path) -> None:
    mountstats = proc / "self/mountstats"
    mountstats.write_text(mountstats.read_text().replace("/data/my\\040set", "/home"))
    assert read(proc)["/home"]["server"] == "10.20.0.7:/export/data"


@pytest.mark.parametrize("text", ["", "net 0 0 0 0\n", "rpc x y z\n", "garbage\n"])
def test_a_garbled_file_is_malformed(proc: Path, text: str) -> None:
    (proc / "net/rpc/nfs").write_text(text)
    with pytest.raises(MalformedError, match="net/rpc/nfs"):
        read(proc)


def test_numbers_that_are_none_are_left_out(proc: Path) -> None:
    mountstats = proc / "self/mountstats"
    mountstats.write_text(mountstats.read_text().replace("513 516 2", "513 -1 x"))
    values = read(proc)["/data/my\\040set"]
    assert values.keys().isdisjoint({"write_transmissions_total", "write_timeouts_total"})
    assert values["write_operations_total"] == 513
