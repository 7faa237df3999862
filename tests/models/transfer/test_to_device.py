"""Jobs taken from device to device."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.energy.power_limit import PowerLimitCurve
from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.surrogate import NotFittedError
from crosswind.models.transfer.to_device import DeviceTransfer

BATCHES, LIMITS = (8, 32, 128), (100.0, 150.0, 200.0, 250.0)
JOBS = {"vision": (2000.0, 30.0, 150.0), "language": (600.0, 60.0, 180.0), "idle": (500.0, 1.0, 3.0)}


def device(speed: float, static: float) -> pd.DataFrame:
    """A device that obeys the law of power limits, each job this much faster than on one of speed 1."""
    rows = []
    for (job, (launch, compute, dynamic)), batch, limit in product(JOBS.items(), BATCHES, LIMITS):
        free = np.hypot(launch / batch, compute)
        demand = dynamic * compute / free
        headroom = np.array([np.log((limit - static) / demand)])
        curve = PowerLimitCurve()
        slower, drawn = np.exp(curve.log_slowdown(headroom)[0]), np.exp(curve.log_draw(headroom)[0])
        rows.append((job, batch, limit, free * slower / speed, static + demand * drawn))
    return pd.DataFrame(rows, columns=["job", "batch", "limit_watts", "seconds", "watts"])


SOURCES = {"old": device(1.0, 35.0), "older": device(0.6, 30.0)}
TARGET = device(2.0, 60.0)
ANCHORS = TARGET[(TARGET["batch"] == 32) & (TARGET["limit_watts"] == 250.0)]


def test_one_run_a_job_tells_the_other_batches_and_limits() -> None:
    seconds, watts = DeviceTransfer().fit(SOURCES, ANCHORS).medians(TARGET)
    # Static power is guessed from the least power seen, so demand and headroom are a few percent off.
    assert seconds == pytest.approx(TARGET["seconds"].to_numpy(), rel=0.15)
    assert watts == pytest.approx(TARGET["watts"].to_numpy(), rel=0.15)


def test_jobs_may_differ_by_several_numbers() -> None:
    deep = {name: deeper(table) for name, table in SOURCES.items()}
    anchors = deeper(TARGET)[deeper(TARGET)["batch"].eq(32) & deeper(TARGET)["limit_watts"].eq(250.0)]
    transfer = DeviceTransfer(coordinates=("batch", "layers")).fit(deep, anchors[anchors["layers"] == 8])
    seconds, watts = transfer.medians(deeper(TARGET))
    assert np.median(np.abs(np.log(seconds / deeper(TARGET)["seconds"]))) < 0.05
    assert np.median(np.abs(np.log(watts / deeper(TARGET)["watts"]))) < 0.05


def deeper(table: pd.DataFrame) -> pd.DataFrame:
    """The same jobs with 8 and with 16 layers, which take twice as long."""
    return pd.concat([table.assign(layers=n, seconds=table["seconds"] * n / 8) for n in (8, 16)], ignore_index=True)


def test_more_runs_correct_a_batch_curve_of_the_targets_own() -> None:
    odd = TARGET.assign(seconds=TARGET["seconds"] * np.where(TARGET["batch"] == 128, 1.5, 1.0))
    top = odd[odd["limit_watts"] == 250.0]
    seconds, _ = DeviceTransfer().fit(SOURCES, top).medians(odd)
    errors = np.abs(np.log(seconds / odd["seconds"].to_numpy()))
    anchored, _ = DeviceTransfer().fit(SOURCES, top[top["batch"] == 32]).medians(odd)
    assert np.mean(errors) < 0.5 * np.mean(np.abs(np.log(anchored / odd["seconds"].to_numpy())))


def test_a_source_whose_ratios_differ_from_job_to_job_weighs_less() -> None:
    uneven = SOURCES["older"].assign(
        seconds=SOURCES["older"]["seconds"] * SOURCES["older"]["job"].map({"vision": 1.0, "language": 5.0, "idle": 0.2})
    )
    weights = DeviceTransfer().fit({"old": SOURCES["old"], "uneven": uneven}, ANCHORS).weights
    assert weights["old"] > 0.98


def test_it_is_saved_and_read_again_without_a_change() -> None:
    model = DeviceTransfer().fit(SOURCES, TARGET.iloc[::2])
    again = read_model(write_model(model))
    for one, other in zip(model.medians(TARGET), again.medians(TARGET), strict=True):
        assert np.array_equal(one, other)


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(NotFittedError, match="came before fit"):
        DeviceTransfer().medians(TARGET)
    with pytest.raises(InvalidInputError, match="no source device"):
        DeviceTransfer().fit({}, ANCHORS)
    with pytest.raises(InvalidInputError, match="no source ran one of the jobs"):
        DeviceTransfer().fit(SOURCES, ANCHORS.assign(job="new"))
    model = DeviceTransfer().fit(SOURCES, ANCHORS.iloc[:2])
    with pytest.raises(InvalidInputError, match="job idle has no run at the target's highest limit"):
        model.medians(TARGET)
    with pytest.raises(InvalidInputError, match="has no column batch"):
        model.medians(TARGET.drop(columns="batch"))
