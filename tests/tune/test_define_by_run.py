"""Spaces that a program names while it runs, with Optuna's names."""

import threading
from types import ModuleType
from typing import Any

import pytest
from tests.tune.conftest import SPACE, Open

from crosswind import tune
from crosswind.data.schema.errors import ConflictError, InvalidInputError

in_the_store = pytest.mark.parametrize("place", ["home"], indirect=True)
ELSEWHERE = [pytest.param(place, marks=pytest.mark.thorough) for place in ("folder", "server")]

# An objective as Optuna's users write them; nothing of it but the name of the module is ours.
OPTUNA_OBJECTIVE = """
import optuna


def objective(trial):
    optimizer = trial.suggest_categorical("optimizer", ["adam", "sgd", None])
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    n_layers = trial.suggest_int("n_layers", 1, 3)
    units = [trial.suggest_int(f"units_{layer}", 4, 128, log=True) for layer in range(n_layers)]
    dropout = trial.suggest_float("dropout", 0.0, 0.5, step=0.1)
    momentum = trial.suggest_float("momentum", 0.0, 0.99) if optimizer == "sgd" else 0.0
    loss = 1.0
    for epoch in range(5):
        loss = abs(lr - 0.01) + sum(abs(unit - 32) for unit in units) / 100 + dropout + momentum + 1 / (epoch + 1)
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return loss
"""


def ported() -> ModuleType:
    """The module of the objective with its import changed, and nothing else."""
    module = ModuleType("ported")
    exec(OPTUNA_OBJECTIVE.replace("import optuna", "import crosswind.tune as optuna"), module.__dict__)
    return module


@pytest.mark.parametrize("place", ["home", *ELSEWHERE], indirect=True)
def test_an_objective_of_optuna_runs_with_another_import(open_study: Open) -> None:
    study = open_study("net", objective="loss")
    study.optimize(ported().objective, trials=14)
    rows = study.trials
    assert set(rows["state"]) <= {"done", "pruned"}
    assert rows["value"].notna().sum() >= 6
    parameters: Any = study.space["parameters"]
    assert parameters["lr"] == {"kind": "float", "low": 1e-4, "high": 1e-1, "log": True}
    assert parameters["optimizer"] == {"kind": "categorical", "values": ["adam", "sgd", "None"]}
    assert parameters["dropout"] == {"kind": "ordinal", "values": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]}
    done = rows[rows["state"] == "done"]
    assert (done["units_0"].between(4, 128)).all()
    assert (done["momentum"].notna() == (done["optimizer"] == "sgd")).all() if "momentum" in done else True
    assert study.best.value == rows["value"].min()


@in_the_store
def test_a_conditional_parameter_is_only_there_where_it_was_asked_for(open_study: Open) -> None:
    study = open_study("choice")

    def objective(trial: tune.Trial) -> float:
        if trial.suggest_categorical("solver", ["direct", "iterative"]) == "direct":
            return 5.0
        return trial.suggest_int("sweeps", 1, 6) - 1.0

    study.optimize(objective, trials=20)
    rows = study.trials
    assert (rows["sweeps"].notna() == (rows["solver"] == "iterative")).all()
    assert study.best.value == 0.0
    assert study.best.configuration == {"solver": "iterative", "sweeps": 1}
    assert len(rows) < 20  # seven configurations there are, and each was tried; the first trials were drawn blindly
    assert study.ask() is None


@in_the_store
def test_the_search_learns_parameters_that_it_has_seen(open_study: Open) -> None:
    study = open_study("learned")
    study.optimize(lambda trial: (trial.suggest_float("x", -10.0, 10.0) - 3.0) ** 2, trials=16)
    assert study.best.value < 0.1  # of blind draws, one in thirty would be as near


def test_programs_name_parameters_beside_each_other(open_study: Open) -> None:
    study = open_study("beside")
    barrier = threading.Barrier(3)
    starts: list[dict[str, object]] = []

    def objective(trial: tune.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if len(starts) < 3:
            starts.append(trial.params)
            barrier.wait(20)
        return x

    study.optimize(objective, trials=9, parallel=3)
    rows = study.trials
    assert list(rows["state"]) == ["done"] * 9
    assert rows["x"].nunique() == 9
    assert all(set(start) == {"x"} for start in starts)


def test_a_parameter_keeps_its_values(open_study: Open) -> None:
    study = open_study("kept")
    first, second, other = study.ask(), study.ask(), open_study("kept").ask()
    assert first is not None
    assert second is not None
    assert other is not None
    value = first.suggest_int("n", 1, 8)
    assert first.suggest_int("n", 1, 8) == value
    with pytest.raises(InvalidInputError, match=r"parameter n is a whole number from 1 to 9, expected .* 1 to 8"):
        first.suggest_int("n", 1, 9)
    with pytest.raises(
        InvalidInputError, match=r"parameter n is a whole number from 1 to 9, expected .* as in earlier"
    ):
        second.suggest_int("n", 1, 9)
    study.tell(first, 1.0)
    with open_study("kept") as late:
        other.suggest_int("n", 1, 9)
        with pytest.raises(InvalidInputError, match=r"parameter n is .*'high': 8.* in study 'kept', not .*'high': 9"):
            late.tell(other, 1.0)
    study.release(second)


@in_the_store
def test_names_work_in_a_fixed_space_too(open_study: Open) -> None:
    study = open_study("fixed", SPACE)
    trial = study.ask()
    assert trial is not None
    assert trial.suggest_categorical("batch", [8, 16, 32, 64]) == trial["batch"]
    assert trial.suggest_int("workers", 0, 8) == trial["workers"]
    with pytest.raises(InvalidInputError, match="parameter lr is not in the trial, expected batch, workers"):
        trial.suggest_float("lr", 0.0, 1.0)
    open_study("growing")
    with pytest.raises(ConflictError, match="is there with another space: of one its programs name the parameters"):
        open_study("growing", SPACE)


@in_the_store
def test_ends_that_are_none_are_refused_by_name(open_study: Open) -> None:
    study = open_study("wrong")
    trial = study.ask()
    assert trial is not None
    with pytest.raises(InvalidInputError, match=r"parameter lr: low is 1.0 and high is 0.0, expected low <= high"):
        trial.suggest_float("lr", 1.0, 0.0)
    with pytest.raises(InvalidInputError, match=r"parameter lr: step is 0\.1 and log is True, expected one of them"):
        trial.suggest_float("lr", 0.1, 1.0, step=0.1, log=True)
    with pytest.raises(InvalidInputError, match="parameter n: step is 0, expected a whole number of at least 1"):
        trial.suggest_int("n", 1, 9, step=0)
    with pytest.raises(InvalidInputError, match="parameter c: values is empty"):
        trial.suggest_categorical("c", [])
    assert trial.suggest_int("steps", 0, 9, step=4) in (0, 4, 8)
    study.tell(trial, 1.0)


@in_the_store
def test_a_trial_that_breaks_keeps_what_it_was_given(open_study: Open) -> None:
    study = open_study("breaks")
    study.optimize(lambda trial: trial.suggest_float("a", 0.0, 1.0) + trial.suggest_float("b", 0.0, 1.0), trials=2)

    def broken(trial: tune.Trial) -> float:
        trial.suggest_float("a", 0.0, 1.0)
        raise RuntimeError("no memory")

    study.optimize(broken, trials=1, catch=(RuntimeError,))
    last = study.trials.iloc[-1]
    assert last["state"] == "failed"
    assert 0 <= last["a"] <= 1
    assert 0 <= last["b"] <= 1
