import math
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.ingest.lab.conditions import KNOBS, Conditions


def test_each_rank_and_knob_has_a_value_of_its_own(tmp_path: Path) -> None:
    with Conditions.create(tmp_path / "conditions", 3) as conditions:
        for rank in range(3):
            for number, knob in enumerate(KNOBS):
                conditions.set(rank, knob, 10 * rank + number + 0.5)
        values = [[conditions.get(rank, knob) for knob in KNOBS] for rank in range(3)]
    assert values == [[0.5, 1.5, 2.5], [10.5, 11.5, 12.5], [20.5, 21.5, 22.5]]


def test_nothing_is_disturbed_at_first(tmp_path: Path) -> None:
    with Conditions.create(tmp_path / "conditions", 2) as conditions:
        assert {conditions.get(rank, knob) for rank in range(2) for knob in KNOBS} == {0.0}


def test_another_process_sees_a_change_at_once(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from crosswind.ingest.lab.conditions import Conditions
conditions = Conditions.attach(Path(sys.argv[1]))
for _ in sys.stdin:
    print(conditions.get(1, "slow_rank_ms"), flush=True)
"""
    path = tmp_path / "conditions"
    command = [sys.executable, "-c", script, str(path)]
    with (
        Conditions.create(path, 2) as conditions,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as rank,
    ):
        assert rank.stdin is not None
        assert rank.stdout is not None
        for milliseconds in (0.0, 12.5, 0.0):
            conditions.set(1, "slow_rank_ms", milliseconds)
            rank.stdin.write("?\n")
            assert rank.stdout.readline() == f"{milliseconds}\n"
        rank.stdin.close()


@pytest.mark.parametrize(
    ("rank", "knob", "value"),
    [(2, KNOBS[0], 1.0), (-1, KNOBS[0], 1.0), (0, "speed", 1.0), (0, KNOBS[0], -1.0), (0, KNOBS[0], math.nan)],
)
def test_what_nobody_could_read_is_refused(tmp_path: Path, rank: int, knob: str, value: float) -> None:
    with (
        Conditions.create(tmp_path / "conditions", 2) as conditions,
        pytest.raises(InvalidInputError, match=f"rank {rank}, knob '{knob}', value {value}: expected a rank below 2"),
    ):
        conditions.set(rank, knob, value)


def test_a_rank_that_is_not_there_receives_nothing(tmp_path: Path) -> None:
    with Conditions.create(tmp_path / "conditions", 2) as conditions, pytest.raises(struct.error):
        conditions.get(2, KNOBS[0])


@pytest.mark.parametrize(("content", "message"), [(b"", "empty"), (bytes(25), "25 bytes, expected a multiple of 24")])
def test_a_file_of_another_size_is_malformed(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "conditions"
    path.write_bytes(content)
    with pytest.raises(MalformedError, match=f"{path}: {message}"):
        Conditions.attach(path)


def test_a_file_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="nowhere/conditions: No such file"):
        Conditions.attach(tmp_path / "nowhere" / "conditions")
    with pytest.raises(UnavailableError, match="nowhere/conditions: No such file"):
        Conditions.create(tmp_path / "nowhere" / "conditions", 1)


def test_a_run_without_ranks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="ranks 0: expected 1 or more"):
        Conditions.create(tmp_path / "conditions", 0)
