"""Parameters as columns: names that mean the same, and those that predict among many."""

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.question import Question
from crosswind.models.next_run.describe import FORMULA, described
from crosswind.models.next_run.parameters import VARYING_MAX, learned_columns, with_common


def common(configuration: dict[str, object], ranks: int = 8) -> dict[str, float]:
    row = with_common(described([Question("w", "s", configuration, ranks)])).iloc[0]
    return {name.removeprefix("common."): value for name, value in row.items() if str(name).startswith("common.")}


@pytest.mark.parametrize(
    ("configuration", "batch"),
    [
        ({"global_batch_size": 256}, 256),
        ({"train-batch-size": 256}, 256),
        ({"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}, 64),
        ({"batch_size": 4}, 32),
        ({"batch_size": 4, "global_batch": 99}, 99),
    ],
)
def test_the_batch_of_all_ranks_is_one_column_whatever_it_is_called(
    configuration: dict[str, object], batch: float
) -> None:
    assert common(configuration)["batch"] == batch
    assert common(configuration)["rank_batch"] == batch / 8


def test_learning_rates_and_samples_have_one_column_each() -> None:
    assert common({"opt_base_learning_rate": 0.1, "train_samples": 1000}) == {"learning_rate": 0.1, "samples": 1000}
    assert common({"lr": 0.2, "depth": 3}) == {"learning_rate": 0.2}
    assert common({"lr": "auto", "depth": 3}) == {}


def test_where_formulas_know_the_network_a_table_stays_as_it_is() -> None:
    table = described([Question("w", "s", {"batch": 8}, 4)]).assign(**{FORMULA: 1.0})
    assert with_common(table) is table


def many(count: int, rows: int = 200) -> tuple[pd.DataFrame, "np.ndarray"]:
    """Runs on ten systems with so many settings, of which the first alone changes their seconds."""
    random = np.random.default_rng(0)
    settings = random.integers(1, 9, (rows, count))
    asked = [
        Question("w", f"s{place % 10}", {f"p{name}": int(value) for name, value in enumerate(row)}, 2 ** (place % 4))
        for place, row in enumerate(settings)
    ]
    return with_common(described(asked)), 10.0 * settings[:, 0] * np.exp(0.05 * random.normal(size=rows))


def test_of_many_parameters_those_are_learned_from_that_predict_on_other_systems() -> None:
    table, seconds = many(VARYING_MAX + 10)
    assert [name for name in learned_columns(table, seconds) if name.startswith("config.")] == ["config.p0"]


def test_few_parameters_are_all_learned_from() -> None:
    table, seconds = many(VARYING_MAX)
    assert set(learned_columns(table, seconds)) == set(table.columns)


def test_a_parameter_that_says_what_a_common_column_says_is_left_out() -> None:
    asked = [Question("w", "s", {"global_batch_size": batch, "micro": 1}, 4) for batch in (8, 16, 32)]
    table = with_common(described(asked))
    names = learned_columns(table, np.array([1.0, 2.0, 3.0]))
    assert "common.batch" in names
    assert "config.micro" in names
    assert "config.global_batch_size" not in names


def test_texts_count_by_what_their_levels_say_on_other_systems() -> None:
    table, _ = many(VARYING_MAX + 5)
    kind = np.array(["slow", "fast"])[np.arange(len(table)) // 10 % 2]
    seconds = np.where(kind == "slow", 4.0, 1.0)
    chosen = learned_columns(table.assign(**{"config.kind": kind}), seconds)
    assert [name for name in chosen if name.startswith("config.")] == ["config.kind"]
