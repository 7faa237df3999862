"""Our search in experiments of the real Ray Tune, which `make peers` installs."""

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="needs make peers: no ray")
tune = pytest.importorskip("ray.tune", reason="needs make peers: no ray[tune]")

from crosswind.data.schema.errors import InvalidInputError  # noqa: E402
from crosswind.models.tuner.search.source import Source  # noqa: E402
from crosswind.raytune import CrosswindSearch  # noqa: E402
from crosswind.samplers.ray_space import ray_space  # noqa: E402

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]  # Ray's own
SPACE = {
    "x": tune.uniform(0, 1),
    "rate": tune.loguniform(1e-5, 1e-1),
    "drop": tune.quniform(0.0, 0.5, 0.1),
    "model": {"width": tune.lograndint(8, 513), "layers": tune.randint(1, 5), "heads": tune.qrandint(2, 16, 2)},
    "kernel": tune.choice(["a", "b", None]),
    "pin": tune.choice([True, False]),
    "epochs": 3,
}


def test_a_space_of_ray_is_a_space_of_ours_and_constants_are_left_out() -> None:
    assert ray_space(SPACE).space.as_json() == {
        "x": {"kind": "float", "low": 0, "high": 1, "log": False},
        "rate": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True},
        "drop": {"kind": "ordinal", "values": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]},
        "model/width": {"kind": "int", "low": 8, "high": 512, "log": True},
        "model/layers": {"kind": "int", "low": 1, "high": 4, "log": False},
        "model/heads": {"kind": "ordinal", "values": [2, 4, 6, 8, 10, 12, 14, 16]},
        "kernel": {"kind": "categorical", "values": ['"a"', '"b"', "null"]},
        "pin": {"kind": "boolean"},
    }


def test_configurations_are_nested_as_the_space_and_have_its_values() -> None:
    space = ray_space(SPACE)
    for ours in space.space.random(20, seed=0):
        theirs = space.outward(ours)
        assert set(theirs) == {"x", "rate", "drop", "model", "kernel", "pin"}
        assert set(theirs["model"]) == {"width", "layers", "heads"}
        assert theirs["kernel"] in ("a", "b", None)
        assert space.checked(theirs) == ours


def test_many_steps_are_rounded_to_ray_s_multiples() -> None:
    space = ray_space({"q": tune.qloguniform(1e-4, 1e-1, 5e-5), "n": tune.qlograndint(4, 4096, 4)})
    for ours in space.space.random(50, seed=0):
        theirs = space.outward(ours)
        assert theirs["q"] / 5e-5 == pytest.approx(round(theirs["q"] / 5e-5))
        assert type(theirs["n"]) is int
        assert theirs["n"] % 4 == 0
        assert 4 <= theirs["n"] <= 4096


@pytest.mark.parametrize(
    ("space", "says"),
    [
        ({"x": tune.grid_search([1, 2])}, "parameter x is a grid_search, expected tune.choice"),
        ({"a": {"x": tune.randn(0, 1)}}, "parameter a/x is a Float drawn by"),
        ({"x": tune.sample_from(lambda _: 1)}, "parameter x is a Function drawn by"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(space: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        CrosswindSearch(space)


def search(mode: str = "min", **options: Any) -> CrosswindSearch:
    return CrosswindSearch({"x": tune.randint(0, 8)}, "loss", mode, **options)


@pytest.mark.parametrize(("mode", "best"), [("min", 0), ("max", 7)])
def test_the_mode_is_the_direction_and_the_end_of_the_space_that_of_the_search(mode: str, best: int) -> None:
    ours, tried = search(mode), []
    while (config := ours.suggest(f"t{len(tried)}")) != CrosswindSearch.FINISHED:
        ours.on_trial_complete(f"t{len(tried)}", {"loss": config["x"]})  # type: ignore[index]
        tried.append(config["x"])  # type: ignore[index]
    assert sorted(tried) == list(range(8))
    assert best in tried[:5]


def test_running_trials_are_not_suggested_again() -> None:
    ours = search()
    assert len({ours.suggest(f"t{number}")["x"] for number in range(6)}) == 6  # type: ignore[index]


def test_results_without_a_number_are_failures_and_stopped_trials_are_pruned() -> None:
    ours = search()
    ends: list[dict[str, Any]] = [{"result": {"loss": 2}}, {"error": True}, {"result": {"loss": float("nan")}}, {}]
    for number, end in enumerate(ends):
        ours.suggest(f"t{number}")
        ours.on_trial_complete(f"t{number}", **end)
    ours.on_trial_complete("unknown", {"loss": 1.0})
    assert [trial["state"] for trial in ours.get_state()["trials"]] == ["done", "failed", "failed", "pruned"]


def test_what_was_measured_before_is_learned() -> None:
    source = Source("before", [{"x": 5}, {"x": 1}, {"x": 7}], [1.0, 4.0, 3.0])
    assert search(sources=source).suggest("t0") == {"x": 5}
    ours = search(points_to_evaluate=[{"x": 3}])
    ours.add_evaluated_point({"x": 2}, 1.0)
    ours.add_evaluated_point({"x": 6}, 1.0, error=True)
    assert ours.suggest("t0") == {"x": 3}
    assert ours.suggest("t1")["x"] not in (2, 3, 6)  # type: ignore[index]


def test_a_saved_search_goes_on_where_it_was(tmp_path: Path) -> None:
    before = search(points_to_evaluate=[{"x": 3}, {"x": 4}])
    before.suggest("t0")
    before.on_trial_complete("t0", {"loss": 1.0})
    before.save(str(tmp_path / "search.json"))
    after = search()
    after.restore(str(tmp_path / "search.json"))
    assert after.suggest("t1") == {"x": 4}
    assert [trial["objective"] for trial in after.get_state()["trials"]] == [1.0, None]


def test_bad_input_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"bad.json: KeyError\('trials'\); expected what CrosswindSearch.save"):
        search().restore(str(tmp_path / "bad.json"))
    with pytest.raises(InvalidInputError, match="parameter x is 9, expected a whole number from 0 to 7"):
        search().add_evaluated_point({"x": 9}, 1.0)
    with pytest.raises(InvalidInputError, match="parameter x is None, expected"):
        search(points_to_evaluate=[{"y": 9}]).suggest("t0")
    with pytest.raises(InvalidInputError, match="has no metric, expected one here or in the Tuner"):
        CrosswindSearch({"x": tune.randint(0, 8)}).suggest("t0")
    with pytest.raises(InvalidInputError, match="expected one name"):
        CrosswindSearch(metric=["a", "b"], mode=["min", "max"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="mode is 'least', expected 'min' or 'max'"):
        search("least")
    with pytest.raises(InvalidInputError, match="source 7, expected a name"):
        search(sources=[7])


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()
    with warnings.catch_warnings():  # of the sockets that Ray has left open
        warnings.simplefilter("ignore")
        gc.collect()


def shifted(config: dict[str, Any]) -> None:
    """Report a cost in two iterations, the last one counts; wide models have no room."""
    if config["model"]["width"] > 48:
        raise MemoryError
    terms = [config["x"] - 0.4 - config["shift"], config["model"]["width"] / 64 - 0.5, config["kernel"] != "b"]
    for iteration in (1, 2):
        tune.report({"cost": (1 + sum(term**2 for term in terms)) / iteration})


def results(search: CrosswindSearch, shift: float, trials: int, folder: Path) -> "tune.ResultGrid":
    space = {
        "x": tune.uniform(0, 1),
        "model": {"width": tune.randint(1, 65)},
        "kernel": tune.choice(["a", "b"]),
        "shift": shift,
    }
    config = tune.TuneConfig(
        metric="cost", mode="min", search_alg=search, num_samples=trials, max_concurrent_trials=2, reuse_actors=True
    )
    run = tune.RunConfig(storage_path=str(folder), verbose=0)
    return tune.Tuner(shifted, param_space=space, tune_config=config, run_config=run).fit()


@pytest.mark.usefixtures("cluster")
def test_an_experiment_with_the_results_of_another_needs_fewer_trials(tmp_path: Path) -> None:
    before = results(CrosswindSearch(seed=1), 0.0, 8, tmp_path)
    assert 0 < before.num_errors < 8
    after = results(CrosswindSearch(sources=[before]), 0.1, 3, tmp_path)
    assert after.num_errors <= 1  # of the first trials one is the search's own, wherever the source knows little
    assert after.get_best_result().metrics["cost"] <= 1.05 * before.get_best_result().metrics["cost"]
    searcher = CrosswindSearch()
    states = sorted((Path(after.experiment_path)).glob("*searcher-state*"))
    assert searcher.set_search_properties("cost", "min", {"x": tune.uniform(0, 1)})
    searcher.restore(str(states[-1]))
    assert len(searcher.get_state()["trials"]) == 3
