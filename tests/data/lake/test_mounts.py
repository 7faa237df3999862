from pathlib import Path

import pytest

from crosswind.data.lake.mounts import Mount, mount_of

# As proc_pid_mountinfo(5) describes it; the second line's optional field and the escaped blank are in its example.
MOUNTINFO = """\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
36 22 0:32 / /home rw,noatime master:1 - nfs4 server:/home rw,vers=4.2,local_lock=none
37 22 0:33 / /late rw - nfs server:/late rw,vers=3,nocto,local_lock=none
38 22 0:34 / /alone rw - nfs server:/alone rw,vers=3,local_lock=flock
39 22 0:35 / /project rw - lustre 10.0.0.1@o2ib:/project rw,flock,lazystatfs
41 22 0:39 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw,localflock
42 22 0:40 / /scratch/local\\040disk rw - xfs /dev/nvme0n1 rw
43 36 0:41 / /home/overmounted rw - nfs4 server:/other rw
44 36 0:42 / /home/overmounted rw - tmpfs tmpfs rw
45 22 0:43 / /elsewhere rw - 9p share rw,flock,local_lock=none
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTINFO)
    return path


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/crosswind", "ext4"),
        ("/home/me/.local/share/crosswind/spool", "nfs4"),
        ("/homestead", "ext4"),
        ("/scratch/me", "lustre"),
        ("/scratch/local disk/spool", "xfs"),
        ("/home/overmounted/spool", "tmpfs"),
    ],
)
def test_a_folder_is_on_the_file_system_mounted_closest_above_it(mounts: Path, folder: str, kind: str) -> None:
    assert mount_of(Path(folder), mounts).kind == kind


def test_a_mount_tells_the_options_of_its_file_system(mounts: Path) -> None:
    assert mount_of(Path("/home"), mounts).options == {"rw", "vers=4.2", "local_lock=none"}


@pytest.mark.parametrize(
    ("folder", "holds"),
    [
        ("/var", True),
        ("/scratch/local disk", True),
        ("/home", True),
        ("/late", False),
        ("/alone", False),
        ("/project", True),
        ("/scratch", False),
        ("/elsewhere", False),
    ],
)
def test_a_lock_holds_on_every_node_where_no_other_writes_or_the_mount_says_so(
    mounts: Path, folder: str, holds: bool
) -> None:
    assert mount_of(Path(folder), mounts).has_locks_of_all is holds


def test_where_nobody_tells_the_file_system_it_may_be_of_several_nodes(tmp_path: Path) -> None:
    unknown = mount_of(tmp_path, tmp_path / "none")
    assert unknown == Mount()
    assert not unknown.is_of_one_node
    assert not unknown.has_locks_of_all
