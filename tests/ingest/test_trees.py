"""Packed trees come out as they went in."""

from pathlib import Path

import pytest
from tests.ingest.trees import PACKED, pack, recorded_tree, unpack

FILES = {"proc/stat": "cpu 1 2\n\nintr 3\n", "sys/empty": "", "sys/open": "12", "sys/z": "last\n\n"}


def test_files_and_links_come_out_as_they_went_in(tmp_path: Path) -> None:
    for path, content in FILES.items():
        (tmp_path / "here" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / path).write_text(content)
    (tmp_path / "here/sys/link").symlink_to("../proc")
    unpack(pack(tmp_path / "here"), tmp_path / "there")
    assert {path: (tmp_path / "there" / path).read_text() for path in FILES} == FILES
    assert (tmp_path / "there/sys/link").readlink() == Path("../proc")
    assert len(list((tmp_path / "there").rglob("*"))) == len(FILES) + 3


@pytest.mark.parametrize("content", ["=== a\n", "1\n=== a\n", "\n"])
def test_a_file_that_would_change_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(ValueError, match="file"):
        pack(tmp_path)


@pytest.mark.parametrize("name", sorted(path.stem for path in PACKED.iterdir()))
def test_what_was_recorded_packs_to_the_same_text(name: str) -> None:
    assert pack(recorded_tree(name)) == (PACKED / f"{name}.txt").read_text()
