import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from crosswind.data.errors import InvalidInputError
from crosswind.models.predict import OWN_ERRORS_MIN, SURROGATE, predict_next

FP32 = {"batch": 8, "precision": "fp32"}


def runs(seconds: list[float], **columns: object) -> pd.DataFrame:
    """Earlier runs of one cohort."""
    fixed = {"configuration": [FP32] * len(seconds), "world_size": 2, "seconds": seconds}
    return pd.DataFrame({**fixed, **columns})


def steady(count: int, seed: int = 0) -> pd.DataFrame:
    """Runs of 0.1 s with 5 % noise that nothing explains."""
    return runs((0.1 * np.exp(0.05 * np.random.default_rng(seed).standard_normal(count))).tolist())


def loaded(count: int, seed: int = 0) -> pd.DataFrame:
    """Runs that take 0.1 s on an idle machine and up to 0.3 s on a loaded one, with 2 % noise."""
    rng = np.random.default_rng(seed)
    load = rng.integers(0, 3, size=count).astype(float)
    return runs((0.1 * (1 + load) * np.exp(0.02 * rng.standard_normal(count))).tolist(), load_at_start=load)


def scaled(count: int, seed: int = 0) -> pd.DataFrame:
    """First runs of as many configurations; twice the batch takes twice as long."""
    rng = np.random.default_rng(seed)
    batches = rng.permutation(count) + 1
    configurations = [{"batch": int(batch)} for batch in batches]
    seconds = 0.01 * batches * np.exp(0.02 * rng.standard_normal(count))
    return pd.DataFrame({"configuration": configurations, "world_size": 2, "seconds": seconds})


def test_a_steady_cohort_is_predicted_by_a_baseline_around_its_median() -> None:
    history = steady(40)
    answer = predict_next(history, FP32, world_size=2)
    median = answer.seconds[answer.levels.index(0.5)]
    assert answer.method != SURROGATE
    assert median == pytest.approx(0.1, rel=0.05)  # the noise of one run; the median's is far smaller
    assert (answer.runs, answer.cohort_runs, answer.validated_runs) == (40, 40, 20)
    assert answer.promised_coverage == pytest.approx(0.9)
    assert answer.warnings == ()


def test_the_surrogate_takes_over_where_a_condition_explains_the_time() -> None:
    answer = predict_next(loaded(120), FP32, world_size=2, conditions={"load_at_start": 2.0})
    assert answer.method == SURROGATE
    assert answer.losses[SURROGATE] < min(loss for name, loss in answer.losses.items() if name != SURROGATE)
    assert answer.seconds[answer.levels.index(0.5)] == pytest.approx(0.3, rel=0.1)  # a baseline would say 0.2


def test_an_unknown_condition_at_the_start_is_allowed() -> None:
    answer = predict_next(loaded(60), FP32, world_size=2)
    assert 0.08 < answer.seconds[answer.levels.index(0.5)] < 0.35


def test_a_configuration_that_never_ran_is_predicted_from_the_others() -> None:
    history = scaled(60)
    history = history[[each["batch"] != 30 for each in history["configuration"]]].reset_index(drop=True)
    answer = predict_next(history, {"batch": 30}, world_size=2)
    assert answer.method == SURROGATE
    assert answer.cohort_runs == 0
    assert answer.seconds[answer.levels.index(0.5)] == pytest.approx(0.3, rel=0.25)  # trees interpolate in steps
    assert "never ran before: it is predicted from 59 others" in answer.warnings[0]


def test_few_runs_promise_little() -> None:
    answer = predict_next(steady(6), FP32, world_size=2)
    assert answer.promised_coverage == pytest.approx(4 / 6)  # five forecasts of earlier runs
    assert answer.method != SURROGATE


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_it_abstains_from_too_few_runs_and_says_how_many_more(count: int) -> None:
    message = f"{count - 1} repeats .* expected at least 4: run this configuration {5 - count} more times"
    with pytest.raises(InvalidInputError, match=message):
        predict_next(steady(count), FP32, world_size=2)


def test_five_runs_are_enough() -> None:
    answer = predict_next(steady(5), FP32, world_size=2)
    assert (answer.method, answer.losses, answer.validated_runs) == ("always_median", {}, 0)


def test_it_abstains_without_any_run() -> None:
    with pytest.raises(InvalidInputError, match="0 earlier runs, expected at least 5"):
        predict_next(steady(0), FP32, world_size=2)


def test_it_abstains_from_a_new_configuration_beside_few_others() -> None:
    with pytest.raises(InvalidInputError, match=r"never ran with world_size 4 and 1 others did"):
        predict_next(steady(30), FP32, world_size=4)


def test_a_young_cohort_borrows_the_relative_errors_of_the_others() -> None:
    others = pd.concat([steady(30).assign(configuration=[{**FP32, "batch": size}] * 30) for size in (16, 32)])
    young = runs([1.0, 1.01])
    answer = predict_next(pd.concat([others, young], ignore_index=True), FP32, world_size=2)
    assert answer.cohort_runs == 2 < OWN_ERRORS_MIN
    assert answer.promised_coverage == pytest.approx(0.9)
    assert answer.seconds[0] < 1 < answer.seconds[-1]


def test_what_lies_outside_of_all_earlier_runs_is_warned_of() -> None:
    answer = predict_next(scaled(20), {"batch": 64, "fused": True}, world_size=8)
    assert "batch is 64, earlier runs had 1 to 20" in answer.warnings
    assert "world_size is 8, earlier runs had 2 to 2" in answer.warnings
    assert "fused is True, no earlier run had it" in answer.warnings


def test_a_condition_outside_and_a_parameter_left_out_are_warned_of() -> None:
    history = pd.concat([loaded(10), loaded(10).assign(configuration=[{"batch": 8}] * 10)], ignore_index=True)
    answer = predict_next(history, {"batch": 8}, world_size=2, conditions={"load_at_start": 9.0})
    assert answer.warnings == (
        "parameter precision is not given, earlier runs had it",
        "load_at_start is 9.0, earlier runs had 0.0 to 2.0",
    )


def test_the_future_does_not_reach_the_validation() -> None:
    """The losses over the newest half must not change with how the history would have gone on."""
    history = loaded(40)
    before = predict_next(history, FP32, world_size=2).losses
    changed = predict_next(history.assign(seconds=[*history["seconds"][:-1], 1000.0]), FP32, world_size=2).losses
    truth_alone = {name: changed[name] - before[name] for name in before}
    # Only the last of 20 validated rows changed, as a truth and never as a lesson: its own loss rises alike for all.
    assert max(truth_alone.values()) == pytest.approx(min(truth_alone.values()), rel=0.2)


def test_the_answer_is_plain_json() -> None:
    answer = asdict(predict_next(steady(12), FP32, world_size=2))
    assert json.loads(json.dumps(answer))["method"] == answer["method"]
    assert list(answer["seconds"]) == sorted(answer["seconds"])


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (steady(9).drop(columns="seconds"), "history has no column seconds"),
        (steady(9).assign(seconds=0.0), "history row 0: seconds is 0.0, expected a positive number"),
        (steady(9).assign(seconds="fast"), "history column seconds is of type .*, expected numbers"),
        (steady(9).assign(configuration=None), "history row 0: configuration is None, expected a mapping"),
        (steady(9).assign(world_size=np.nan), "history row 0: world_size is nan, expected at least 1"),
        (steady(9).assign(node="n1"), "history column node is of type"),
    ],
)
def test_a_malformed_history_is_refused(history: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        predict_next(history, FP32, world_size=2)


def test_an_unheard_of_condition_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="condition humidity is in no earlier run; known: none"):
        predict_next(steady(9), FP32, world_size=2, conditions={"humidity": 1.0})


def test_an_infinite_condition_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="condition load_at_start is inf, expected a finite number"):
        predict_next(loaded(9), FP32, world_size=2, conditions={"load_at_start": np.inf})
