from typing import Any

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.question import Question
from crosswind.models.next_run.describe import MANY, TEXTS_MAX, described
from crosswind.models.surrogate.columns import Columns


def of(*configurations: dict[str, Any]) -> list[Question]:
    return [Question("gpt", "lab", configuration, 8) for configuration in configurations]


def column(name: str, *configurations: dict[str, Any]) -> list[object]:
    values = described(of(*configurations))[f"config.{name}"]
    return [None if pd.isna(value) else value for value in values]


def test_numbers_and_truth_values_are_numbers_and_missing_is_nan() -> None:
    assert column("x", {"x": 8}, {"x": True}, {"x": 0.5}) == [8.0, 1.0, 0.5]
    assert column("x", {"x": 8}, {}) == [8.0, None]


def test_one_text_makes_texts_of_all_in_its_column() -> None:
    assert column("x", {"x": 8}, {"x": 8.0}, {"x": "auto"}, {}) == ["8", "8", "auto", None]


def test_columns_that_are_known_keep_their_kind() -> None:
    categories = Columns.of(described(of({"a": 8, "b": "auto"}, {"a": 4, "b": 8}))).categories
    asked = described(of({"a": "16", "b": 8.0}, {"a": "auto", "b": "auto"}, {"a": "inf"}), categories)
    assert asked["config.a"].tolist() == pytest.approx([16.0, np.nan, np.nan], nan_ok=True)
    assert asked["config.b"].fillna("-").tolist() == ["8", "auto", "-"]


def test_texts_that_nearly_all_differ_tell_nothing_and_take_one_place() -> None:
    paths: list[dict[str, Any]] = [{"out": f"/scratch/{number}"} for number in range(TEXTS_MAX + 1)]
    table = described(of(*paths))
    assert set(table["config.out"]) == {MANY}
    categories = Columns.of(table).categories
    assert described(of({"out": "/scratch/new"}, {}), categories)["config.out"].fillna("-").tolist() == [MANY, "-"]
    assert len(set(described(of(*paths[:TEXTS_MAX]))["config.out"])) == TEXTS_MAX


def test_a_known_accelerator_tells_what_it_can_do() -> None:
    names = ("NVIDIA A100-SXM4-80GB", "L4", "abacus")
    table = described(of(*({"accelerator": name} for name in names), {}))
    assert table["device.flops_16bit"].tolist() == pytest.approx([312e12, 121e12, np.nan, np.nan], nan_ok=True)
    assert table["fact.device"].fillna("-").tolist() == ["A100-SXM-80GB", "L4", "abacus", "-"]
    assert not [name for name in described(of({"accelerator": "abacus"})) if str(name).startswith("device.")]


def test_a_network_that_is_told_gets_its_time_by_formulas() -> None:
    table = described(of({"hidden": 1024, "layers": 24, "global_batch": 64}, {"hidden": 1024}))
    seconds = table["analytic.step_seconds"].tolist()
    assert seconds[0] > 0
    assert np.isnan(seconds[1])


def test_a_network_that_cannot_be_has_no_time_by_formulas() -> None:
    assert "analytic.step_seconds" not in described(of({"hidden": "wide", "layers": 24}))
