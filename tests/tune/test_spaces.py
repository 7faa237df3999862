"""Spaces as programs write them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest

from crosswind import tune
from crosswind.data.schema.errors import InvalidInputError
from crosswind.tune.spaces import form_of, parameter_of


@dataclass(frozen=True)
class Training:
    lr: Annotated[float, (1e-5, 1e-1, "log")] = 1e-3
    batch: Annotated[int, "per device", [8, 16, 32]] = 16
    fused: bool = field(default=True, metadata={"tune": [False, True]})
    epochs: int = 3


@pytest.mark.parametrize(
    ("form", "parameter"),
    [
        ((1, 64), {"kind": "int", "low": 1, "high": 64}),
        ((0.0, 0.9), {"kind": "float", "low": 0.0, "high": 0.9}),
        ((0, 0.9), {"kind": "float", "low": 0, "high": 0.9}),
        ((1e-5, 1e-1, "log"), {"kind": "float", "low": 1e-5, "high": 1e-1, "log": True}),
        (range(1, 9), {"kind": "int", "low": 1, "high": 8}),
        (range(8, 0, -1), {"kind": "int", "low": 1, "high": 8}),
        (range(0, 9, 4), {"kind": "int", "low": 0, "high": 8, "step": 4}),
        ([8, 16, 32], {"kind": "ordinal", "values": [8, 16, 32]}),
        ([32, 8], {"kind": "categorical", "values": [32, 8]}),
        (["adam", "sgd"], {"kind": "categorical", "values": ["adam", "sgd"]}),
        ([True, False], {"kind": "boolean"}),
        ([0, 1], {"kind": "ordinal", "values": [0, 1]}),
        ({"kind": "int", "low": 1, "high": 2, "when": "a > 1"}, {"kind": "int", "low": 1, "high": 2, "when": "a > 1"}),
    ],
)
def test_a_short_form_is_a_parameter_of_a_study_file(form: object, parameter: dict[str, object]) -> None:
    assert parameter_of("p", form) == parameter


@pytest.mark.parametrize("form", ["adam", (1,), (1, 2, 3), ("a", "b"), (1, 2, "linear"), 7, None, (True, False)])
def test_another_form_is_refused_with_the_parameters_name(form: object) -> None:
    with pytest.raises(InvalidInputError, match=r"parameter p is .*, expected \(low, high\)"):
        parameter_of("p", form)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected a range with at least one number"):
        parameter_of("p", range(0))


def test_constraints_stand_beside_parameters_or_as_a_word(tmp_path: Path) -> None:
    inside = {"parameters": {"dp": [1, 2, 4], "tp": [1, 2]}, "constraints": ["dp * tp == 4"]}
    with (
        tune.study("inside", inside) as study,
        tune.study("beside", inside["parameters"], constraints=["dp * tp == 4"]) as other,
    ):
        assert study.space == other.space
        study.optimize(lambda trial: 1.0, trials=10)
        assert {(row.dp, row.tp) for row in study.trials.itertuples()} == {(2, 2), (4, 1)}


def test_a_dataclass_marks_what_is_tuned_and_comes_back_filled() -> None:
    with tune.study("class", Training, objective="loss") as study:
        trial = study.ask()
        assert trial is not None
        config = trial.as_dataclass()
        assert isinstance(config, Training)
        assert config == Training()  # the program's own values are tried first
        second = study.ask()
        assert second is not None
        config = second.as_dataclass()
        assert isinstance(config, Training)
        assert (config.lr, config.batch, config.fused, config.epochs) == (*second.configuration.values(), 3)
        assert set(trial.configuration) == {"lr", "batch", "fused"}


def test_an_instance_gives_the_start_and_what_is_not_tuned() -> None:
    form = form_of(Training(lr=0.01, batch=8, epochs=9))
    assert form.start == {"lr": 0.01, "batch": 8, "fused": True}
    assert form.make is not None
    assert form.make({"lr": 0.1, "batch": 32, "fused": False}) == Training(0.1, 32, False, 9)
    assert form_of(Training).start == {"lr": 1e-3, "batch": 16, "fused": True}


def test_a_dataclass_that_cannot_be_tuned_is_refused() -> None:
    @dataclass
    class Unmarked:
        lr: float = 1.0

    @dataclass
    class Incomplete:
        data: str
        lr: Annotated[float, (0.0, 1.0)]

    with pytest.raises(InvalidInputError, match="dataclass Unmarked marks no field"):
        form_of(Unmarked)
    with pytest.raises(InvalidInputError, match="field data of Incomplete has no default"):
        form_of(Incomplete)
    assert form_of(Incomplete(data="d", lr=0.5)).start == {"lr": 0.5}
    with pytest.raises(InvalidInputError, match="space is 'lr', expected a dictionary of parameters or a dataclass"):
        form_of("lr")
    with tune.study("plain", {"lr": (0.0, 1.0)}) as study:
        trial = study.ask()
        assert trial is not None
        with pytest.raises(InvalidInputError, match="the study's space is no dataclass"):
            trial.as_dataclass()
