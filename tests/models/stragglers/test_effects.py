import numpy as np
import pytest
from scipy import sparse

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.stragglers.effects import Effects, Factor, crossed_effects

RUNS, EACH, NODES = 120, 4, 30


def drawn(seed: int, nodes: int = NODES, runs: int = RUNS) -> tuple[np.ndarray, ...]:  # type: ignore[type-arg]
    """Runs on four nodes each: node, place and run of every rank, true effects of nodes, and what was observed.

    The noise is bounded, so that nothing is clipped.
    """
    random = np.random.default_rng(seed)
    node = np.array([random.choice(nodes, EACH, replace=False) for _ in range(runs)]).ravel()
    place, run = np.tile(np.arange(EACH), runs), np.repeat(np.arange(runs), EACH)
    own, of_place = random.normal(0, 0.04, nodes), random.normal(0, 0.1, EACH)
    noise = random.uniform(-0.08, 0.08, len(node))
    return node, place, run, own, random.normal(0, 0.5, runs)[run] + own[node] + of_place[place] + noise


def fitted(seed: int, nodes: int = NODES, runs: int = RUNS) -> tuple[Effects, np.ndarray]:  # type: ignore[type-arg]
    node, place, run, own, y = drawn(seed, nodes, runs)
    return crossed_effects(y, run, [Factor.of("node", node, nodes), Factor.of("place", place, EACH)]), own


def test_effects_solve_the_mixed_model_equations() -> None:
    node, place, run, _, y = drawn(0)
    effects, _ = fitted(0)
    z = np.hstack([np.eye(NODES)[node], np.eye(EACH)[place]])
    x = np.eye(RUNS)[run]
    sigma2 = effects.noise**2
    tau2 = np.repeat([effects.variances["node"], effects.variances["place"]], [NODES, EACH])
    left = np.block([[x.T @ x, x.T @ z], [z.T @ x, z.T @ z + np.diag(sigma2 / tau2)]])  # Henderson 1975
    solved = np.linalg.solve(left, np.concatenate([x.T @ y, z.T @ y]))[RUNS:]
    variances = np.diag(np.linalg.inv(left))[RUNS:] * sigma2
    assert np.concatenate([effects.values["node"], effects.values["place"]]) == pytest.approx(solved, abs=2e-4)
    assert np.concatenate([effects.errors["node"], effects.errors["place"]]) == pytest.approx(
        np.sqrt(variances), rel=0.01
    )


@pytest.mark.parametrize(("nodes", "runs"), [(NODES, RUNS), (500, 2000)])  # exact standard errors, and each one's own
def test_intervals_hold_the_truth_as_often_as_they_say(nodes: int, runs: int) -> None:
    inside = []
    for seed in range(4):
        effects, own = fitted(seed, nodes, runs)
        off = (effects.values["node"] - (own - own.mean())) / effects.errors["node"]
        inside += (np.abs(off) < 1.645).tolist()
    assert 0.84 <= np.mean(inside) <= 0.96  # of 120 the share has a standard deviation of 2.7 %


def test_the_variances_are_found() -> None:
    effects, own = fitted(3, 400, 4000)
    assert effects.noise == pytest.approx(0.16 / np.sqrt(12), rel=0.03)
    assert effects.variances["node"] == pytest.approx(np.var(own), rel=0.1)


def test_what_is_always_together_is_not_told_apart() -> None:
    run = np.repeat(np.arange(200), 2)
    node = place = np.tile([0, 1], 200)  # node 1 always holds place 1
    y = 0.3 * node + np.random.default_rng(0).normal(0, 0.02, 400)
    effects = crossed_effects(y, run, [Factor.of("node", node, 2), Factor.of("place", place, 2)])
    halves = [effects.values[name][1] - effects.values[name][0] for name in ("node", "place")]
    assert sum(halves) == pytest.approx(0.3, abs=0.02)
    assert halves[0] == pytest.approx(halves[1], rel=0.1)
    assert effects.errors["node"][1] > 0.05  # a node that is distinguished has 0.02 / sqrt(200)


def test_one_wild_run_makes_no_effect() -> None:
    node, place, run, _, y = drawn(1)
    victim = int(np.flatnonzero(node == 5)[0])
    wild = y.copy()
    wild[victim] += 10.0
    factors = [Factor.of("node", node, NODES), Factor.of("place", place, EACH)]
    calm, stormy = crossed_effects(y, run, factors), crossed_effects(wild, run, factors)
    assert abs(stormy.values["node"][5] - calm.values["node"][5]) < 0.03  # of 10 / 16 that a mean would take


def test_what_was_never_compared_is_as_everything_is() -> None:
    y = np.array([1.0, 1.2, 3.0])
    effects = crossed_effects(y, np.array([0, 0, 1]), [Factor.of("node", np.array([0, 1, 2]), 3)])
    assert effects.values["node"][2] == pytest.approx(0.0, abs=1e-9)
    assert effects.informative["node"].tolist() == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize("y", [np.array([]), np.array([1.0, np.nan]), np.array([1.0, np.inf])])
def test_what_is_no_number_is_refused(y: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(InvalidInputError, match="expected one at least, all finite"):
        crossed_effects(y, np.zeros(len(y), np.int64), [Factor.of("node", np.zeros(len(y), np.int64), 1)])


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="3 observations: expected as many groups"):
        crossed_effects(np.ones(3), np.zeros(3, np.int64), [Factor("node", sparse.csr_matrix(np.ones((2, 1))))])
