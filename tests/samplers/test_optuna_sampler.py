"""Our sampler in studies of the real Optuna, which `make peers` installs."""

import json
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking

optuna = pytest.importorskip("optuna", reason="needs make peers: no optuna")

from crosswind.data.schema.errors import InvalidInputError, NotFoundError  # noqa: E402
from crosswind.models.tuner.search.source import Source  # noqa: E402
from crosswind.optuna import CrosswindSampler  # noqa: E402

pytestmark = pytest.mark.thorough
Objective = Callable[["optuna.Trial"], float]
NEAR = 1.1  # the optimum is 1


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def valley(shift: float) -> Objective:
    """A cost with its optimum, 1, at a place that differs from study to study; every kind of distribution."""

    def cost(trial: "optuna.Trial") -> float:
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        width = trial.suggest_int("width", 8, 512, log=True)
        layers = trial.suggest_int("layers", 2, 12, step=2)
        drop = trial.suggest_float("drop", 0.0, 0.5, step=0.1)
        mix = trial.suggest_float("mix", 0.0, 1.0)
        kernel = trial.suggest_categorical("kernel", ["a", "b", None])
        terms = [
            (math.log10(rate) + 2 + shift) / 2,
            (math.log2(width) - 6 - shift) / 3,
            (layers - 6) / 6,
            (drop - 0.2) / 0.4,
            mix - 0.4 - shift / 2,
        ]
        return 1 + sum(term**2 for term in terms) + (0.0 if kernel is None else 0.3)

    return cost


def study_of(cost: Objective, trials: int, **options: object) -> "optuna.Study":
    study = optuna.create_study(sampler=CrosswindSampler(**options))  # type: ignore[arg-type]
    study.optimize(cost, n_trials=trials)
    return study


def trials_until(study: "optuna.Study", bound: float) -> int:
    """The trials that the study needed to get below a bound; one more than it has where it never did."""
    reached = [trial.number + 1 for trial in study.trials if trial.value is not None and trial.value <= bound]
    return reached[0] if reached else len(study.trials) + 1


def test_a_source_saves_trials_on_a_shifted_function() -> None:
    old = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    old.optimize(valley(0.0), n_trials=60)
    for seed in range(2):
        cold = study_of(valley(0.3), 15, seed=seed)
        warm = study_of(valley(0.3), 15, seed=seed, sources=[old])
        assert trials_until(warm, NEAR) <= 8 < trials_until(cold, NEAR)


def test_every_value_is_one_that_the_objective_asked_for() -> None:
    study = study_of(valley(0.0), 12)
    for trial in study.trials:
        assert set(trial.params) == {"rate", "width", "layers", "drop", "mix", "kernel"}
        assert 1e-4 <= trial.params["rate"] <= 1
        assert type(trial.params["width"]) is int
        assert trial.params["layers"] in (2, 4, 6, 8, 10, 12)
        assert any(math.isclose(trial.params["drop"], tenth / 10) for tenth in range(6))
        assert trial.params["kernel"] in ("a", "b", None)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12


def test_a_space_that_is_given_is_searched_from_the_first_trial() -> None:
    floats = optuna.distributions.FloatDistribution
    row = {"x": 0.75, "y": 0.25}
    source = Source("before", [row, {"x": 0.1, "y": 0.9}, {"x": 0.2, "y": 0.8}], [1.0, 3.0, 2.0])
    sampler = CrosswindSampler(source, space={"x": floats(0, 1), "y": floats(0, 1)})
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    assert (trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)) == (0.75, 0.25)
    assert study.trials[0].system_attrs["crosswind:suggested"] == row


def test_before_the_space_is_known_a_trial_has_the_values_of_a_best_row_where_they_are_possible() -> None:
    source = Source("before", [{"x": 0.75, "y": 9.0}, {"x": 0.1, "y": 0.9}], [1.0, 3.0])
    trial = optuna.create_study(sampler=CrosswindSampler([source])).ask()
    assert trial.suggest_float("x", 0, 1) == 0.75
    assert 0 <= trial.suggest_float("y", 0, 1) <= 1


@pytest.mark.parametrize(("direction", "best"), [("minimize", 1), ("maximize", 64)])
def test_the_direction_is_the_studys(direction: str, best: int) -> None:
    study = optuna.create_study(direction=direction, sampler=CrosswindSampler())
    study.optimize(lambda trial: trial.suggest_int("x", 1, 64), n_trials=12)
    assert study.best_params == {"x": best}


def test_parameters_under_a_condition_are_searched_with_those_that_decide() -> None:
    def cost(trial: "optuna.Trial") -> float:
        if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":
            return 3 + abs(trial.suggest_int("depth", 1, 30) - 7)
        count = trial.suggest_int("layers", 1, 2)
        return 1 + sum(abs(trial.suggest_float(f"width-{place}", 0, 1) - 0.6) for place in range(count))

    study = study_of(cost, 30)
    assert study.best_value < 1.1
    assert all(set(trial.params) <= set(trial.system_attrs["crosswind:suggested"]) for trial in study.trials[20:])


def test_a_condition_that_no_single_parameter_decides_leaves_random_values() -> None:
    def cost(trial: "optuna.Trial") -> float:
        a, b = (trial.suggest_categorical(name, [True, False]) for name in "ab")
        return 1 + (trial.suggest_float("both", 0, 1) if a and b else float(a))

    study = study_of(cost, 12)
    assert {name for trial in study.trials for name in trial.params} == {"a", "b", "both"}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 12


def test_workers_of_one_study_and_one_seed_choose_differently(tmp_path: Path) -> None:
    journal = optuna.storages.journal
    with_lock = journal.JournalFileOpenLock(str(tmp_path / "journal.log"))
    storage = optuna.storages.JournalStorage(
        journal.JournalFileBackend(str(tmp_path / "journal.log"), lock_obj=with_lock)
    )
    space = {"x": optuna.distributions.IntDistribution(1, 1000), "y": optuna.distributions.IntDistribution(1, 1000)}
    workers = [
        optuna.create_study(
            study_name="one", storage=storage, sampler=CrosswindSampler(space=space), load_if_exists=True
        )
        for _ in range(3)
    ]
    trials = [worker.ask() for worker in workers]  # all have begun before one has chosen
    chosen = [(trial.suggest_int("x", 1, 1000), trial.suggest_int("y", 1, 1000)) for trial in trials]
    for worker, trial in zip(workers, trials, strict=True):
        worker.tell(trial, 1.0)
    again = [worker.ask() for worker in workers]
    chosen += [(trial.suggest_int("x", 1, 1000), trial.suggest_int("y", 1, 1000)) for trial in again]
    assert len(set(chosen)) == 6


def test_threads_of_one_study_try_no_configuration_twice() -> None:
    space = {"x": optuna.distributions.IntDistribution(0, 11)}
    study = optuna.create_study(sampler=CrosswindSampler(space=space))
    study.optimize(lambda trial: trial.suggest_int("x", 0, 11), n_trials=12, n_jobs=4)
    assert sorted(trial.params["x"] for trial in study.trials) == list(range(12))


def test_when_the_space_is_used_up_values_are_random() -> None:
    study = study_of(lambda trial: trial.suggest_int("x", 1, 3), 6)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 6
    assert {trial.params["x"] for trial in study.trials[:3]} == {1, 2, 3}


def test_configurations_that_fail_are_avoided_and_pruned_ones_are_learned() -> None:
    def cost(trial: "optuna.Trial") -> float:
        x = trial.suggest_float("x", 0, 1)
        if x > 0.5:
            raise MemoryError
        if x > 0.4:
            raise optuna.TrialPruned
        return 1 - x

    study = optuna.create_study(sampler=CrosswindSampler())
    study.optimize(cost, n_trials=25, catch=MemoryError)
    failed = [trial.state.name == "FAIL" for trial in study.trials]
    assert sum(failed[10:]) < 15 / 2  # chance is a half, and the objective falls towards the cliff
    assert study.best_value < 0.65


def test_infinite_values_and_unmet_constraints_are_no_measurements() -> None:
    def cost(trial: "optuna.Trial") -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("memory", x - 0.5)
        return math.inf if x < 0.1 else -x

    study = study_of(cost, 20)
    met = [trial.params["x"] for trial in study.trials if 0.1 <= trial.params["x"] <= 0.5]
    assert len(met) > 8
    assert max(met) > 0.4


def test_an_enqueued_trial_is_run_as_it_is() -> None:
    study = optuna.create_study(sampler=CrosswindSampler())
    study.enqueue_trial({"x": 7})
    study.optimize(lambda trial: trial.suggest_int("x", 1, 64), n_trials=3)
    assert study.trials[0].params == {"x": 7}


def test_several_objectives_are_searched_for_their_front() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=CrosswindSampler())
    study.optimize(lambda trial: (x := trial.suggest_float("x", 0, 1), x * trial.suggest_float("y", 0, 1)), n_trials=20)
    assert sum(trial.params["y"] > 0.9 for trial in study.trials[5:]) >= 8


def test_more_than_four_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 5, sampler=CrosswindSampler())
    with pytest.raises(InvalidInputError, match="5 objectives, expected at most 4"):
        study.optimize(lambda trial: [trial.suggest_float("x", 0, 1)] * 5, n_trials=2)


def test_a_sampler_can_be_pickled_and_goes_on() -> None:
    study = study_of(valley(0.0), 4)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(valley(0.0), n_trials=2)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 6


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """A store with a study that minimises and one that maximises; 40 is best in both."""
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TUNE_FOLDER", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    verb = asking(capsys)
    rows = "".join(f"{x},{{sign}}{1 + abs(x - 40)}\n" for x in range(1, 65, 3))
    for name, sign in (("cost", ""), ("gain", "-")):
        direction = "maximise" if sign else "minimise"
        study = f"objective: {name}\ndirection: {direction}\nparameters: {{x: {{kind: int, low: 1, high: 64}}}}\n"
        Path(f"{name}.yaml").write_text(study)
        Path(f"{name}.csv").write_text(f"x,{name}\n" + rows.format(sign=sign))
        assert verb("tune", "create", f"{name}.yaml")[0] == 0
        assert verb("tune", "import", name, f"{name}.csv")[0] == 0
    return verb


@pytest.mark.usefixtures("ask")
@pytest.mark.parametrize(("name", "direction", "sign"), [("cost", "minimize", 1), ("gain", "maximize", -1)])
def test_a_study_of_the_store_is_a_source(name: str, direction: str, sign: int) -> None:
    study = optuna.create_study(direction=direction, sampler=CrosswindSampler([name]))
    study.optimize(lambda trial: sign * (1 + abs(trial.suggest_int("x", 1, 64) - 41)), n_trials=4)
    assert study.trials[0].params == {"x": 40}
    assert abs(study.best_params["x"] - 41) <= 1


def test_a_study_in_a_shared_folder_is_a_source(ask: Ask, tmp_path: Path) -> None:
    folder = str(tmp_path / "shared")
    ask("tune", "create", "cost.yaml", "--folder", folder)
    values = {}
    for place in range(4):
        asked = ask("tune", "next", "cost", "--slot", str(place), "--folder", folder, "--json")
        [trial] = json.loads(asked[1])
        values[trial["configuration"]["x"]] = cost = 1 + abs(trial["configuration"]["x"] - 40)
        assert ask("tune", "tell", "cost", trial["trial_id"], str(cost), "--folder", folder)[0] == 0
    assert ask("tune", "stop", "cost", "--folder", folder)[0] == 0  # it hands out nothing, and is learnt from
    study = study_of(lambda trial: trial.suggest_int("x", 1, 64), 1, sources=["cost"], folder=folder)
    assert study.trials[0].params == {"x": min(values, key=lambda x: values[x])}


@pytest.mark.usefixtures("ask")
def test_sources_that_cannot_be_used_are_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="source gain is maximised, expected one that is minimised"):
        study_of(lambda trial: trial.suggest_int("x", 1, 64), 1, sources=["gain"])
    with pytest.raises(NotFoundError, match="nobody"):
        study_of(lambda trial: trial.suggest_int("x", 1, 64), 1, sources="nobody")
    empty = optuna.create_study(study_name="empty")
    with pytest.raises(InvalidInputError, match="source study empty has no trial with an objective"):
        study_of(lambda trial: trial.suggest_int("x", 1, 64), 1, sources=[empty])
    with pytest.raises(InvalidInputError, match="source 7, expected"):
        CrosswindSampler([7])  # type: ignore[list-item]
