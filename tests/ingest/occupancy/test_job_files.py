import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from tests.needs import ROOT, needs

from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.ingest.occupancy.job_files import MAX_FILE_BYTES, JobFiles

GOOD: dict[str, Any] = {
    "job_id": "4711",
    "node": "n1",
    "system": "lab",
    "restart_count": 0,
    "uid": 1000,
    "nodelist": "n[1-2]",
    "gpus": ["0", "1"],
    "cpus": 8,
    "started_ns": 1_767_323_045_000_000_006,
}
ALLOCATION = Allocation(
    "4711", "n1", "n1.example.org", Source.PROLOG, "lab", 0, None, 1000, GOOD["started_ns"], None, ("0", "1"), 8
)


def write(path: Path, value: object) -> Path:
    draft = path.with_name(f".{path.name}")
    draft.write_text(value if isinstance(value, str) else json.dumps(value))
    draft.rename(path)
    return path


def files_in(directory: Path) -> JobFiles:
    files = JobFiles(directory, "n1.example.org")
    files.refresh()
    return files


def test_a_job_file_becomes_an_allocation(tmp_path: Path) -> None:
    write(tmp_path / "4711.json", GOOD)
    [job_file] = files_in(tmp_path).files.values()
    assert job_file.allocation == ALLOCATION


def test_without_a_node_the_file_is_of_this_node(tmp_path: Path) -> None:
    write(tmp_path / "1.json", {"job_id": "1", "uid": None, "cpus": "", "gpus": []})
    [job_file] = files_in(tmp_path).files.values()
    assert job_file.allocation == Allocation("1", "n1.example.org", "n1.example.org", Source.PROLOG)


def test_a_replaced_file_is_read_again_and_an_old_one_is_not(tmp_path: Path) -> None:
    path = write(tmp_path / "4711.json", GOOD)
    files = files_in(tmp_path)
    assert not files.refresh()
    write(path, GOOD | {"ended_ns": 1_767_323_045_000_000_007})
    assert files.refresh()
    assert [file.allocation.ended_ns for file in files.files.values()] == [1_767_323_045_000_000_007]
    path.unlink()
    assert files.refresh()
    assert (files.files, files.garbled) == ({}, 0)


def test_no_directory_means_no_jobs(tmp_path: Path) -> None:
    files = JobFiles(tmp_path / "missing", "n1")
    assert not files.refresh()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "[" * 10_000,
        "{}",
        "\x00\x01",
        json.dumps(GOOD) + " " * MAX_FILE_BYTES,
        json.dumps(GOOD | {"job_id": 4711}),
        json.dumps(GOOD | {"job_id": "1,2"}),
        json.dumps(GOOD | {"job_id": "x" * 65}),
        json.dumps(GOOD | {"node": "n 1"}),
        json.dumps(GOOD | {"uid": -1}),
        json.dumps(GOOD | {"uid": True}),
        json.dumps(GOOD | {"started_ns": 2**63}),
        json.dumps(GOOD | {"gpus": "0"}),
        json.dumps(GOOD | {"gpus": ["0\n"]}),
        json.dumps(GOOD | {"gpus": ["0"] * 65}),
        json.dumps(GOOD | {"colour": "red"}),
    ],
)
def test_a_garbled_file_is_counted_and_reported_once_and_hides_no_other(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "1.json", content)
    write(tmp_path / "4711.json", GOOD)
    with caplog.at_level(logging.WARNING):
        files = files_in(tmp_path)
        files.refresh()
        write(tmp_path / "4711.json", GOOD | {"cpus": 9})
        files.refresh()
    assert [file.allocation.job_id for file in files.files.values()] == ["4711"]
    assert files.garbled == 1
    [message] = [record.getMessage() for record in caplog.records]
    assert f"{tmp_path}/1.json is ignored" in message
    assert len(message) < 600


def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path / "4711.json", GOOD).chmod(0o666)
    assert files_in(tmp_path).garbled == 1


@needs(ROOT, "giving a file away", unless=os.geteuid() == 0)
def test_another_users_file_is_not_believed(tmp_path: Path) -> None:
    os.chown(write(tmp_path / "4711.json", GOOD), 65_534, 65_534)
    assert files_in(tmp_path).garbled == 1


def test_what_is_no_plain_file_is_not_believed_and_never_waited_for(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(write(tmp_path / "elsewhere", GOOD))
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    files = files_in(tmp_path)
    assert (files.files, files.garbled) == ({}, 3)


def test_a_draft_that_is_still_written_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".4711.json").write_text('{"job_id"')
    files = files_in(tmp_path)
    assert (files.files, files.garbled) == ({}, 0)


def test_a_file_is_removed_unless_that_of_a_requeued_job_took_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "4711.json", GOOD | {"ended_ns": 1_767_323_045_000_000_007})
    [ended] = files_in(tmp_path).files.values()
    write(path, GOOD | {"restart_count": 1})
    ended.remove()
    [requeued] = files_in(tmp_path).files.values()
    assert requeued.allocation.restart_count == 1
    requeued.remove()
    assert not path.exists()
    requeued.remove()
