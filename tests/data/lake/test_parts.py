import random
from pathlib import Path

import pytest

from crosswind.data.lake.parts import Held, Manifest, manifest_of, part_names, superseded_in


def landed(day: Path, files: int, parts_of_each: int) -> set[str]:
    """Make so many files that each hold parts of their own. Return the names of the parts."""
    parts = [f"part-n{number}.parquet" for number in range(files * parts_of_each)]
    random.Random(1).shuffle(parts)
    for number in range(files):
        path = day / f"part-c{number}_{number}_{number:016x}.parquet"
        made_of = tuple(parts[number * parts_of_each : (number + 1) * parts_of_each])
        manifest_of(path).write_text(Manifest(made_of, frozenset(made_of), 1, "columns", None).as_text())
        path.touch()
    return set(parts)


@pytest.mark.parametrize(("files", "parts_of_each"), [(40, 3), (2, 60)])
def test_parts_that_stand_in_another_file_do_not_count(tmp_path: Path, files: int, parts_of_each: int) -> None:
    parts = landed(tmp_path, files, parts_of_each)
    there = sorted(parts)[::2]
    for name in (*there, "part-other.parquet"):
        (tmp_path / name).touch()
    assert superseded_in(tmp_path, part_names(tmp_path)) == set(there)
    assert superseded_in(tmp_path, part_names(tmp_path), [there[0], "part-new.parquet"]) == {there[0]}
    assert superseded_in(tmp_path, part_names(tmp_path), parts) == parts


def test_a_look_at_a_day_of_many_files_costs_by_their_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    at = Held._at
    monkeypatch.setattr(Held, "_at", lambda held, place: looks.append(place) or at(held, place))  # type: ignore[func-returns-value]
    landed(tmp_path, files=300, parts_of_each=3)
    assert superseded_in(tmp_path, part_names(tmp_path)) == set()
    assert len(looks) <= 300 * 3
    assert superseded_in(tmp_path, part_names(tmp_path), ["part-n1.parquet"]) == {"part-n1.parquet"}
