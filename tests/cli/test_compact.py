import json
import os
import time
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.data.lake.lake import to_table
from crosswind.data.lake.locks import COMPACTING, alone
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

HOUR_SECONDS = 3600


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Three parts of long ago, in the store that the command finds."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path))
    with Store.open(tmp_path) as store:
        paths = [
            path
            for number in range(3)
            for path in store.lake.append(f"p{number}", to_table(STEP, {"ts_ns": [number], "run_id": ["r"]}))
        ]
    long_ago = time.time() - HOUR_SECONDS
    for path in paths:
        os.utime(path, (long_ago, long_ago))
    return paths


def test_it_says_how_many_files_became_how_many(parts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"files_before": 3, "files_after": 1, "rows": 3, "summaries": 0, "problems": []}
    assert main(["compact"]) == 0
    assert capsys.readouterr().out == "1 files became 1; 0 rows were rewritten.\n"


def test_a_file_that_cannot_be_read_is_named(parts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    parts[1].write_bytes(b"PAR1 torn")
    os.utime(parts[1], (0, 0))
    assert main(["compact"]) == 1
    output = capsys.readouterr()
    assert output.err.startswith(f"crosswind: {parts[1]}: left as it is: ")
    assert output.out.startswith("3 files became 2; 2 rows were rewritten.\n")


def test_while_another_process_does_it_it_is_to_be_tried_later(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with alone(tmp_path / "lake" / COMPACTING):
        assert main(["compact"]) == 75
    assert "is being compacted by another process" in capsys.readouterr().err
