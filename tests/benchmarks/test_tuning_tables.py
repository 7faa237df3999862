"""Races over a folder of tables that somebody else measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.accuracy_tuner import by_size, tell_wrong
from benchmarks.tuning import folder, tables
from benchmarks.tuning.peers import RowPeer

from crosswind.data.schema.errors import InvalidInputError

ROOT = Path(__file__).parents[2]
GRID = pd.DataFrame([{"batch": batch, "fused": fused} for batch in (1, 2, 4, 8, 16, 32) for fused in (True, False)])


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two families of tables with the same parameters; the last row of each table failed."""
    for family, best in (("conv", 8), ("gemm", 2)):
        (tmp_path / family).mkdir()
        for name in ("a100", "v100", "t4"):
            seconds = 1.0 + (GRID["batch"] - best).abs() + GRID["fused"]
            rows = GRID.assign(objective=seconds, valid=GRID["batch"].lt(32) | GRID["fused"])
            rows.to_csv(tmp_path / family / f"{name}.csv", index=False)
    rows.to_parquet(tmp_path / "gemm" / "t4.parquet", index=False)
    (tmp_path / "gemm" / "t4.csv").unlink()
    monkeypatch.setattr(tables, "TABLES", tmp_path)
    monkeypatch.setattr(folder, "TABLES", tmp_path)
    tables.table.cache_clear()
    return tmp_path


@pytest.mark.usefixtures("measured")
def test_every_table_is_tuned_from_the_others_of_its_family() -> None:
    assert {task.target: task.sources for task in folder.tasks_within()} == {
        "conv/a100": ("conv/t4", "conv/v100"),
        "conv/t4": ("conv/v100", "conv/a100"),
        "conv/v100": ("conv/a100", "conv/t4"),
        "gemm/a100": ("gemm/t4", "gemm/v100"),
        "gemm/t4": ("gemm/v100", "gemm/a100"),
        "gemm/v100": ("gemm/a100", "gemm/t4"),
    }
    assert tables.table("gemm/t4").n_valid == len(GRID) - 1


@pytest.mark.usefixtures("measured")
def test_wrong_sources_are_another_family_with_the_same_parameters() -> None:
    assert [(task.target, task.sources[0]) for task in folder.tasks_across()] == [
        ("conv/a100", "gemm/a100"),
        ("gemm/a100", "conv/a100"),
    ]


def test_a_folder_without_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "TABLES", tmp_path / "nothing")
    with pytest.raises(InvalidInputError, match=r"TABLES is .*nothing, expected a folder with two or more tables"):
        folder.tasks_within()


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (GRID, "table conv/a100 has the columns batch, fused, expected objective among them"),
        (GRID.assign(objective="1 s"), "table conv/a100 has objectives of type .*, expected numbers"),
        (GRID.assign(objective=-1.0), r"objectives from -1.0 to -1.0 in its valid rows, expected finite ones above 0"),
        (GRID.assign(objective=1.0, valid=False), "objectives from nan to nan in its valid rows"),
    ],
)
def test_a_table_that_is_none_is_refused(measured: Path, broken: pd.DataFrame, error: str) -> None:
    broken.to_csv(measured / "conv" / "a100.csv", index=False)
    with pytest.raises(InvalidInputError, match=error):
        tables.table("conv/a100")


class Next(RowPeer):
    """A peer that asks for the first free row."""

    def asked(self) -> int:
        return int(self._free.argmax())


@pytest.mark.usefixtures("measured")
def test_a_peer_gives_a_batch_without_duplicates_and_ends_with_the_rows() -> None:
    peer = Next(tables.table("conv/a100").space, 0)
    assert len({json.dumps(configuration) for configuration in peer.suggest(8)}) == 8
    assert peer.suggest(100) == peer.suggest(len(GRID))


@pytest.mark.usefixtures("measured")
def test_what_wrong_sources_cost_is_the_mean_ratio_search_by_search(capsys: pytest.CaptureFixture[str]) -> None:
    cold = np.full((2, 8, 80), 1.5)
    wrong = cold * np.where(np.arange(80) < 5, 1.2, 1.0)
    figures = tell_wrong("tables", {"portfolio_misled": wrong, "portfolio_cold": cold})
    assert figures["tables_portfolio_misled_over_portfolio_cold_at_5"] == 1.2
    assert figures["tables_portfolio_misled_over_portfolio_cold_at_10"] == 1
    assert "@5: 1.200, p 0.0039" in capsys.readouterr().out
    assert tell_wrong("tables", {"portfolio_misled": wrong}) == {}


def test_large_tables_stand_apart_where_there_are_small_ones(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = folder.tasks_within()
    assert by_size(tasks) == {}
    GRID.head(4).assign(objective=1.0).to_csv(measured / "conv" / "t4.csv", index=False)
    tables.table.cache_clear()
    monkeypatch.setattr("benchmarks.accuracy_tuner.LARGE", 4)
    assert by_size(tasks) == {"large": [0, 2, 3, 4, 5], "small": [1]}


@pytest.mark.thorough
def test_the_benchmark_races_the_folder(measured: Path) -> None:
    chosen = {"TABLES": str(measured), "TUNER_SEEDS": "1", "TUNER_RACERS": "portfolio,random,portfolio_misled"}
    raced = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--accuracy", "tuner"],
        cwd=ROOT,
        env=os.environ | chosen | {"TUNER_SPLITS": "tables,another_family"},
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(raced.stdout.splitlines()[-1])
    assert figures["tables_portfolio_at_20"] == 1
    assert figures["tables_portfolio_at_1"] <= figures["tables_random_at_1"]
    assert figures["another_family_portfolio_at_1"] > 1
