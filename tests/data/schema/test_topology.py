"""Switch that each node hangs on."""

from pathlib import Path

import pytest

from crosswind.data.schema.errors import MalformedError, NotFoundError
from crosswind.data.schema.topology import switches_at, switches_of

# topology.conf(5), EXAMPLE, with a comment and a line that goes on.
TREE = """##################################################################
# Slurm's network topology configuration file for use with the
##################################################################
SwitchName=s0 Nodes=dev[0-1]  # the first
SwitchName=s1 \\
  Nodes=dev[2-3]
switchname=s2 nodes=dev4
SwitchName=s3 Switches=s[0-2]
"""
# As `scontrol show topology` prints it.
SHOWN = """SwitchName=s0 Level=0 LinkSpeed=1 Nodes=dev[0-1]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=dev[2-3]
SwitchName=s3 Level=1 LinkSpeed=1 Nodes=dev[0-3] Switches=s[0-1]
"""


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "topology.conf"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_leaf_switches_are_read_from_the_file_and_from_what_is_shown(tmp_path: Path) -> None:
    four = {"dev0": "s0", "dev1": "s0", "dev2": "s1", "dev3": "s1"}
    assert switches_of(written(tmp_path, TREE)) == four | {"dev4": "s2"}
    assert switches_of(written(tmp_path, SHOWN)) == four


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected topology.conf of the tree plug-in"),
        ("BlockName=b1 Nodes=n[1-4]", "expected topology.conf of the tree plug-in"),
        ("SwitchName=s0 Nodes=n[1-", "line 1: node list"),
        ("SwitchName=s0 Nodes=n1\nSwitchName=s1 Nodes=n[1-2]", "line 2: node 'n1' hangs on 's0' and 's1'"),
        (b"SwitchName=\xff\xfe", "byte 11 is no UTF-8"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(MalformedError, match=message.replace("[", r"\[")):
        switches_of(written(tmp_path, content))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file"):
        switches_of(tmp_path / "none")


def test_a_stores_own_file_is_read_anew_when_it_changes(tmp_path: Path) -> None:
    assert switches_at(tmp_path) == {}
    written(tmp_path, "SwitchName=s0 Nodes=a")
    assert switches_at(tmp_path) == {"a": "s0"}
    written(tmp_path, "SwitchName=s0 Nodes=a,b")
    assert switches_at(tmp_path) == {"a": "s0", "b": "s0"}
    written(tmp_path, "nothing of it")
    with pytest.raises(MalformedError, match="no line SwitchName"):
        switches_at(tmp_path)
