"""Power of nodes, and energy."""

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.carbon import Origin
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.energy.node_power import NodePower
from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.surrogate import NotFittedError

RUNS = pd.DataFrame(
    {
        "workload": ["bert", "resnet", "ssd", "bert", "resnet", "bert", "ssd", "resnet"],
        "nodes": [1, 1, 1, 8, 8, 4, 4, 2],
    }
)
STATIC = 2000.0
DYNAMIC = 5000.0 * RUNS["nodes"].to_numpy() ** -0.2 * np.where(RUNS["workload"] == "bert", 0.95, 1.0)
WATTS = STATIC + DYNAMIC


def test_a_scale_never_run_is_answered_by_the_trend_of_the_others() -> None:
    asked = pd.DataFrame({"workload": ["resnet"], "nodes": [16]})
    [watts] = NodePower(STATIC).fit(RUNS, WATTS).predict(asked).at(0.5)
    assert watts == pytest.approx(2000 + 5000 * 16**-0.2, rel=0.03)  # the priors hold the trend back a little


def test_a_workload_never_run_is_answered_by_its_scale() -> None:
    asked = pd.DataFrame({"workload": ["unet3d"] * 2, "nodes": [1, 8]})
    one, eight = NodePower(STATIC).fit(RUNS, WATTS).predict(asked).at(0.5)
    assert one == pytest.approx(7000, rel=0.05)  # between bert's 6750 and the others' 7000
    assert eight == pytest.approx(2000 + 5000 * 8**-0.2, rel=0.05)


def test_a_workload_never_run_is_less_certain_than_one_that_was() -> None:
    asked = pd.DataFrame({"workload": ["bert", "unet3d"], "nodes": [2, 2]})
    prediction = NodePower(STATIC).fit(RUNS, WATTS).predict(asked)
    familiar, strange = np.log(prediction.at(0.95) - STATIC) - np.log(prediction.at(0.05) - STATIC)
    assert strange > 1.2 * familiar


def test_repeats_of_a_configuration_count_once() -> None:
    repeated = pd.concat([RUNS, *[RUNS.iloc[:1]] * 50], ignore_index=True)
    watts = np.append(WATTS, np.full(50, WATTS[0]))
    asked = pd.DataFrame({"workload": ["unet3d"], "nodes": [1]})
    once, often = (NodePower(STATIC).fit(*rows).predict(asked).values for rows in ((RUNS, WATTS), (repeated, watts)))
    assert often == pytest.approx(once)


def test_energy_is_static_power_all_the_time_and_dynamic_power_while_busy() -> None:
    model = NodePower(STATIC).fit(RUNS, WATTS)
    run = RUNS.iloc[[3]]  # bert on 8 nodes
    [watts] = model.predict(run).at(0.5)
    assert model.energy(run, 100.0).joules == pytest.approx(8 * 100 * watts)
    assert model.energy(run, 100.0, busy_seconds=0.0).joules == pytest.approx(8 * 100 * 2000)
    assert model.energy(run, 100.0).origin is Origin.ESTIMATED


def test_it_is_saved_and_read_again_without_a_change() -> None:
    model = NodePower(STATIC).fit(RUNS, WATTS)
    assert np.array_equal(read_model(write_model(model)).predict(RUNS).values, model.predict(RUNS).values)


def test_a_missing_number_adds_nothing() -> None:
    runs = RUNS.assign(utilisation=[0.9, 0.8, np.nan, 0.5, 0.6, 0.7, np.nan, 0.7])
    assert np.all(np.isfinite(NodePower(STATIC).fit(runs, WATTS).predict(runs).values))


def test_what_cannot_be_learned_from_or_asked_is_refused() -> None:
    with pytest.raises(NotFittedError, match="came before fit"):
        NodePower().predict(RUNS)
    with pytest.raises(InvalidInputError, match=r"static_watts is 9000\.0, expected from 0 to below"):
        NodePower(9000.0).fit(RUNS, WATTS)
    with pytest.raises(InvalidInputError, match="nodes is 0, expected a positive number"):
        NodePower().fit(RUNS.assign(nodes=0), WATTS)
    with pytest.raises(InvalidInputError, match=r"y\[0\] is -"):
        NodePower().fit(RUNS, -WATTS)
    model = NodePower().fit(RUNS, WATTS)
    with pytest.raises(InvalidInputError, match="no column workload"):
        model.predict(RUNS[["nodes"]])
    with pytest.raises(InvalidInputError, match=r"busy_seconds is 20.0 of 10.0 seconds"):
        model.energy(RUNS.iloc[:1], 10.0, busy_seconds=20.0)
    with pytest.raises(InvalidInputError, match="expected one with nodes"):
        model.energy(RUNS, 10.0)
