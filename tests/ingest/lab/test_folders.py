from pathlib import Path

import pytest

from crosswind.data.schema.errors import ConflictError
from crosswind.ingest.lab.folders import MARKER, SCRATCH, Folders


def test_a_scratch_folder_is_new_every_time_and_gone_afterwards(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "home")
    folders.renew_scratch()
    (folders.scratch / "nobody").mkdir()
    (folders.scratch / "nobody" / "checkpoint.pt").write_bytes(b"1")
    folders.renew_scratch()
    assert [path.name for path in folders.scratch.iterdir()] == [MARKER]
    assert [folders.remove_scratch(), folders.remove_scratch()] == [True, False]
    assert list(folders.home.iterdir()) == []


def test_links_in_a_scratch_folder_are_deleted_and_not_followed(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "home")
    folders.renew_scratch()
    (tmp_path / "thesis.tex").write_text("years of work")
    (folders.scratch / "link").symlink_to(tmp_path)
    assert folders.remove_scratch()
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_no_laboratory_has_made_stays_as_it_is(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.scratch.mkdir()
    (folders.scratch / "thesis.tex").write_text("years of work")
    for action in (folders.renew_scratch, folders.remove_scratch):
        with pytest.raises(ConflictError, match=f"{SCRATCH}: holds no {MARKER}, so it is not a laboratory's"):
            action()
    assert (folders.scratch / "thesis.tex").read_text() == "years of work"


def test_a_link_to_another_laboratorys_scratch_is_not_followed(tmp_path: Path) -> None:
    other = Folders(tmp_path / "other")
    other.renew_scratch()
    (tmp_path / SCRATCH).symlink_to(other.scratch)
    with pytest.raises(ConflictError):
        Folders(tmp_path).remove_scratch()
    assert (other.scratch / MARKER).exists()
