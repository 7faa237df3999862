"""Importances and figures of a study in Python."""

from collections.abc import Iterator

import plotly.graph_objects as go
import pytest

from crosswind import tune
from crosswind.data.schema.errors import InvalidInputError, NotFoundError

SPACE = {"lr": (1e-4, 1e-1, "log"), "layers": (1, 4), "optimizer": ["adam", "sgd"]}


def accuracy(trial: tune.Trial) -> float:
    return 1 - abs(float(trial["layers"]) - 3) / 4 - (trial["optimizer"] == "sgd") / 50


@pytest.fixture
def study() -> Iterator[tune.Study]:
    with tune.study("net", SPACE, objective="accuracy", direction="maximise") as study:
        study.optimize(accuracy, trials=14)
        yield study


def test_importance_names_what_matters(study: tune.Study) -> None:
    shares = study.importance()
    assert shares.index[0] == "layers"
    assert shares["layers"] > 0.6
    assert shares.sum() <= 1.1


def test_every_figure_is_plotly_s_and_in_the_users_direction(study: tune.Study) -> None:
    best = study.best
    figures = [
        study.importance_plot(),
        study.history_plot(),
        study.slice_plot(),
        study.parallel_coordinates_plot(),
        study.contour_plot(),
    ]
    assert all(isinstance(figure, go.Figure) for figure in figures)
    history, slices, contour = figures[1], figures[2], figures[4]
    assert max(history.data[1].y) == best.value
    assert [panel.y[0] for panel in slices.data] == [best.value] * 3
    assert slices.layout.xaxis.type == "log"
    assert slices.layout.xaxis3.type == "category"
    assert 0 < min(map(min, contour.data[0].z)) <= max(map(max, contour.data[0].z)) <= 1
    assert "layers" in (contour.layout.xaxis.title.text, contour.layout.yaxis.title.text)
    assert study.slice_plot("layers").layout.xaxis.title.text == "layers"
    assert study.contour_plot("lr", "optimizer").layout.yaxis.type == "category"


def test_parameters_that_are_none_are_refused(study: tune.Study) -> None:
    with pytest.raises(InvalidInputError, match="parameter batch is unknown, expected lr, layers, optimizer"):
        study.slice_plot("batch")
    with pytest.raises(InvalidInputError, match="there are 1 parameters, expected two or none"):
        study.contour_plot("lr")
    with pytest.raises(InvalidInputError, match="the figure is over lr and lr, expected two different parameters"):
        study.contour_plot("lr", "lr")


def test_a_contour_of_a_single_parameter_is_refused() -> None:
    with tune.study("narrow", {"lr": (0.0, 1.0)}) as study:
        study.optimize(lambda trial: trial["lr"], trials=8)  # type: ignore[arg-type,return-value]
        with pytest.raises(InvalidInputError, match="the figure is over lr, expected two different parameters"):
            study.contour_plot()


def test_values_are_numbers_also_where_every_trial_failed() -> None:
    with tune.study("broken", SPACE) as study:
        assert study.trials["value"].dtype == float
        trial = study.ask()
        assert trial is not None
        study.tell(trial, state="failed", reason="out of memory")
        assert study.trials["value"].dtype == float
        with pytest.raises(NotFoundError, match="study 'broken' has no trial with a value yet"):
            study.importance_plot()


def test_a_young_study_says_what_it_lacks() -> None:
    with tune.study("young", SPACE) as study:
        with pytest.raises(NotFoundError, match="study 'young' has no trial with a value yet"):
            study.history_plot()
        study.optimize(lambda trial: 1.0, trials=2)
        assert len(study.history_plot().data[1].y) == 2
        with pytest.raises(InvalidInputError, match="there are 2 trials with a value, expected 8 or more"):
            study.importance_plot()


def test_conditional_parameters_of_programs_have_figures_too() -> None:
    def objective(trial: tune.Trial) -> float:
        if trial.suggest_categorical("optimizer", ["adam", "sgd"]) == "adam":
            return 2.0 + trial.suggest_float("eps", 0.0, 0.1)
        return 1.0 + trial.suggest_float("momentum", 0.0, 0.5)

    with tune.study("conditional", objective="loss") as study:
        study.optimize(objective, trials=12)
        assert study.importance().index[0] == "optimizer"
        assert set(study.trials.columns) >= {"eps", "momentum"}
        assert len(study.slice_plot().data) == 3
        assert study.parallel_coordinates_plot().data
