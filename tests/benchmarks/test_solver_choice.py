"""The choice of a solver on measured matrices: stages, their cost, and what trials do."""

import numpy as np
import pytest
from benchmarks.accuracy.sparse_solvers import COMPOSED, StagedChooser, System, applies, measured, picks


@pytest.fixture(scope="module")
def systems() -> list[System]:
    return measured()


@pytest.fixture(scope="module")
def chooser(systems: list[System]) -> StagedChooser:
    return StagedChooser.learned(systems[::2])


@pytest.fixture(scope="module")
def scored(systems: list[System]) -> list[System]:
    """Others, of kinds that the chooser knows."""
    return [system for system in systems[1::2] if system.kind != COMPOSED]


def test_the_first_features_are_part_of_all_and_cost_less(systems: list[System]) -> None:
    for system in systems:
        assert system.first.features.items() < system.context.features.items()
        assert 0 < system.first_cost < system.cost


def test_sure_choices_pay_for_the_first_features_alone(scored: list[System], chooser: StagedChooser) -> None:
    costs = [(chooser.choose(system)[1], system) for system in scored]
    is_cheap = np.array([cost == system.first_cost for cost, system in costs])
    assert 0.5 < is_cheap.mean() < 1
    assert all(cost == system.cost for (cost, system), cheap in zip(costs, is_cheap, strict=True) if not cheap)


def test_picks_apply_and_trials_help(scored: list[System], chooser: StagedChooser) -> None:
    assert all(applies(chooser.choose(system)[0].variant, system.context) for system in scored)
    regrets = np.nan_to_num([picks(chooser, system) for system in scored], nan=9.0)
    assert (np.diff(regrets, axis=1) <= 0).mean() > 0.95
    assert regrets[:, 0].mean() < 0.5
    assert regrets[:, -1].mean() < 0.2
