from pathlib import Path

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.cgroups import CpuGroups


def test_a_quota_in_version_2_is_a_group_below_the_root_with_a_maximum(tmp_path: Path) -> None:
    """The files that admin-guide/cgroup-v2 documents, as plain ones."""
    (tmp_path / "proc" / "42").mkdir(parents=True)
    (tmp_path / "proc" / "42" / "cgroup").write_text("0::/user.slice/session-1.scope\n")
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cgroup.subtree_control").write_text("memory pids")
    quota = CpuGroups(root, 2, tmp_path / "proc").limit("cwlab-1-2-abcdef", [42], 150)
    assert quota.folder == root / "cwlab-1-2-abcdef-quota-42"
    assert quota.before == root / "user.slice/session-1.scope"
    assert (root / "cgroup.subtree_control").read_text() == "+cpu"
    assert (quota.folder / "cpu.max").read_text() == "150000 100000"
    assert (quota.folder / "cgroup.procs").read_text() == "42"


def test_in_a_container_the_group_is_below_what_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "cgroup").write_text("3:cpu,cpuacct:/docker/0123/job\n")
    (tmp_path / "job").mkdir()
    quota = CpuGroups(tmp_path, 1, tmp_path, "/docker/0123").limit("cwlab-1-2-abcdef", [42], 40)
    assert quota.folder == tmp_path / "job" / "cwlab-1-2-abcdef-quota-42"
    assert (quota.folder / "cpu.cfs_quota_us").read_text() == "40000"
    assert (quota.folder / "cpu.cfs_period_us").read_text() == "100000"


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("30 23 0:26 / {root} rw - cgroup cgroup rw,cpu,cpuacct", 1),
        ("30 23 0:26 / {root} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate", 2),
    ],
)
def test_the_hierarchy_with_the_cpu_controller_is_found(tmp_path: Path, mounts: str, expected: int) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(
        f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n{mounts.format(root=tmp_path)}\n"
    )
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    assert CpuGroups.mounted(tmp_path) == CpuGroups(tmp_path, expected, tmp_path)


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    with pytest.raises(UnavailableError, match="no mounted control groups with the cpu controller"):
        CpuGroups.mounted(tmp_path)
