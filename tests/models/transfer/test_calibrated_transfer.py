"""Bands of transfers to a device, as wide as the errors between other devices."""

import numpy as np
import pandas as pd
import pytest
from tests.models.transfer.test_to_device import ANCHORS, SOURCES, TARGET, device

from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.surrogate import NotFittedError
from crosswind.models.surrogate.validation import CAUTIOUS_DEVIATION
from crosswind.models.transfer.calibrated_transfer import CalibratedTransfer


def uneven(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The device with a slope of its own in the batches of each job: errors of a job are alike."""
    slopes = dict(zip(sorted(set(table["job"])), np.random.default_rng(seed).normal(0, 0.1, 3), strict=True))
    return table.assign(seconds=table["seconds"] * (table["batch"] / 32) ** table["job"].map(slopes))


def width(model: CalibratedTransfer, batch: int) -> float:
    asked = pd.DataFrame({"job": ["vision"], "batch": [batch], "limit_watts": [250.0]})
    seconds = model.predict(asked).seconds
    return float(np.log(seconds.at(0.95) / seconds.at(0.05))[0])


def test_bands_hold_on_a_device_that_differs_as_the_others_do_among_themselves() -> None:
    held = []
    like_them = device(2.0, 32.0)
    for seed in range(6):  # 18 jobs, whose runs err together: nine in ten are inside, give or take one in ten
        sources = {name: uneven(table, 10 * seed + place) for place, (name, table) in enumerate(SOURCES.items())}
        asked = uneven(like_them, 10 * seed + 9)
        seconds = CalibratedTransfer().fit(sources, asked.loc[ANCHORS.index]).predict(asked).seconds
        held.append((seconds.at(0.05) <= asked["seconds"]) & (asked["seconds"] <= seconds.at(0.95)))
    assert 0.8 <= np.mean(held) <= 1.0


def test_farther_from_the_anchor_the_band_is_wider() -> None:
    sources = {name: uneven(table, place) for place, (name, table) in enumerate(SOURCES.items())}
    model = CalibratedTransfer().fit(sources, ANCHORS)
    assert width(model, 128) > 1.5 * width(model, 32)


def test_devices_that_agree_give_a_narrow_band_and_a_single_one_a_cautious_guess() -> None:
    alone = CalibratedTransfer().fit({"old": SOURCES["old"]}, ANCHORS)
    assert width(alone, 32) == pytest.approx(2 * 1.645 * CAUTIOUS_DEVIATION, rel=0.02)
    assert width(CalibratedTransfer().fit(SOURCES, ANCHORS), 32) < 0.5 * width(alone, 32)


def test_it_is_saved_and_read_again_without_a_change() -> None:
    model = CalibratedTransfer().fit(SOURCES, ANCHORS)
    again = read_model(write_model(model))
    assert np.array_equal(model.predict(TARGET).joules.values, again.predict(TARGET).joules.values)


def test_it_answers_only_once_it_has_learned() -> None:
    with pytest.raises(NotFittedError, match="came before fit"):
        CalibratedTransfer().predict(TARGET)
