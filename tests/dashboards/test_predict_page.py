"""Contents of the Predict page: what a form, a stored run and a batch script are taken for."""

from dataclasses import asdict

import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.predict import predict
from crosswind.dashboards.pages.predict.form import configuration_of, lines_of
from crosswind.dashboards.pages.predict.knobs import knobs_of
from crosswind.dashboards.pages.predict.script import JobScript, read_script
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import Question
from crosswind.data.store.store import Store
from crosswind.models.advice.walltime import slurm_seconds, slurm_time

TORCHRUN = r"""#!/bin/bash
#SBATCH --job-name=pretrain
#SBATCH -N 4
#SBATCH --gres=gpu:a100:4
#SBATCH --time=1-02:00:00
# srun python never.py
export KEY="a
b"
srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=gpu \
    train.py --batch 32 --lr=0.1 --amp --data $DATA --api-key hush
"""


def shown(store: Store, **query: str) -> predict.PredictView:
    return predict.view(Local(store), PageQuery(query))


def test_a_script_is_read_past_its_launchers() -> None:
    assert read_script(TORCHRUN) == JobScript(
        "pretrain", 4, 16, 4, "1-02:00:00", "train", configuration={"batch": 32, "lr": 0.1, "amp": True}
    )


@pytest.mark.parametrize(
    ("text", "ranks", "nodes"),
    [
        ("#SBATCH -n 8 -t 90\nsrun python x.py", 8, None),
        ("#SBATCH --nodes=2 --ntasks-per-node=3\nsrun python x.py", 6, 2),
        ("#SBATCH -N 2\nsrun -n 4 python x.py", 4, 2),
        ("#SBATCH -N 2\ntorchrun --nproc-per-node 2 x.py", 4, 2),
        ("#SBATCH -N $N\nsrun -n '", None, None),
    ],
)
def test_ranks_are_those_that_the_script_starts(text: str, ranks: int | None, nodes: int | None) -> None:
    script = read_script(text)
    assert (script.ranks, script.nodes) == (ranks, nodes)


def test_what_crosswind_run_is_given_goes_before_the_programs_arguments() -> None:
    script = read_script("srun crosswind run --workload w --config a=3 -- python x.py a=2 b=4")
    assert (script.workload, script.program, dict(script.configuration)) == ("w", "x", {"a": 3, "b": 4})


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 5400), ("1:30", 90), ("2:00:01", 7201), ("1-2", 93600), ("1-00:01", 86460)]
)
def test_limits_are_read_as_slurm_reads_them(text: str, seconds: int) -> None:
    assert slurm_seconds(text) == slurm_seconds(slurm_time(seconds)) == seconds


def test_a_configuration_survives_its_lines() -> None:
    configuration = {"batch": 8, "lr": 0.1, "amp": True, "opt": "adam"}
    assert configuration_of(lines_of(configuration).splitlines()) == configuration


def test_a_run_like_a_stored_one_has_a_limit_a_curve_and_its_evidence(lab: Store) -> None:
    view = shown(lab, like="r3")
    made = view.forecast
    assert made is not None
    assert view.sentence.startswith("nanogpt on lab with 2 ranks takes 30.0 s; nine of ten runs take at most ")
    assert made.limit.directive == "#SBATCH --time=00:01:00"
    assert {run.run_id for run in made.answer.evidence} <= {f"r{number}" for number in range(5)}
    assert [chart.name for chart in view.charts] == ["distribution", "scaling"]
    assert (view.implied.ranks, view.implied.nodes, view.implied.config) == ("2", "2", "batch_size=8")
    assert [knob.name for knob in view.knobs] == ["ranks", "batch_size"]


def test_steps_limit_and_price_scale_the_forecast(lab: Store) -> None:
    fields = {"workload": "nanogpt", "config": "batch_size=8"}
    few, many = (shown(lab, **fields, steps=steps, price="2", limit="00:10:00").forecast for steps in ("1000", "2000"))
    assert few is not None
    assert many is not None
    assert many.at(0.5) == pytest.approx(2 * few.at(0.5))
    assert few.cost == pytest.approx(2 * 2 * few.at(0.5) / 3600)  # two nodes
    assert (few.exceedance or 0) < (many.exceedance or 0) + 1e-12 < 1


def test_a_run_far_from_all_that_ran_is_called_outside(lab: Store) -> None:
    view = shown(lab, like="r3", system="elsewhere", ranks="4096")
    assert view.forecast is not None
    assert view.forecast.answer.is_outside
    assert view.forecast.outside


def test_a_script_fills_the_form_with_what_earlier_runs_recorded(lab: Store) -> None:
    text = "#SBATCH -N 2 -t 1:00:00\nsrun -n 2 python nanogpt.py --batch-size 8 --other 3"
    view = shown(lab, script=text)
    given = {name: value for name, value in asdict(view.form).items() if value}
    expected = {"workload": "nanogpt", "ranks": "2", "nodes": "2", "config": "batch_size=8", "limit": "1:00:00"}
    assert given == expected
    assert view.forecast is not None
    assert shown(lab, script=text, ranks="4").form.ranks == "4"


@pytest.mark.parametrize(
    ("query", "field", "refusal"),
    [
        ({"like": "r3", "ranks": "x"}, "ranks", "ranks='x': expected a whole number from 1 to 10000000"),
        ({"like": "nope"}, "like", "run 'nope' is not stored: crosswind runs lists those that are"),
        ({"like": "r3", "config": "batch"}, "config", "config 'batch': expected name=value, one a line"),
        ({"like": "r3", "limit": "soon"}, "limit", "limit 'soon': expected a time limit such as"),
        ({"like": "r3", "price": "-1"}, "price", "price '-1': expected a number from 0 on"),
        ({"like": "r3", "nodes": "3"}, "nodes", "node_count 3: expected 1 to the 2 ranks"),
        ({"like": "r3", "confidence": "1"}, "confidence", "confidence='1': expected one of 0.9, 0.95, 0.99"),
        ({"workload": "nope"}, "workload", "workload 'nope': no run of it is stored"),
    ],
)
def test_wrong_input_is_named_and_the_form_stays_filled(
    lab: Store, query: dict[str, str], field: str, refusal: str
) -> None:
    view = shown(lab, **query)
    assert view.refusal.startswith(refusal)
    assert view.refused == field
    assert {name: value for name, value in asdict(view.form).items() if value} == query
    assert view.forecast is None


def test_an_empty_form_offers_stored_runs(lab: Store, store: Store) -> None:
    assert [example.run_id for example in shown(lab).examples] == ["r4"]
    assert shown(store).examples == ()


def test_sliders_halve_and_double() -> None:
    ranks, batch, rate = knobs_of(Question("w", "s", {"batch": 4, "lr": 0.1, "amp": True, "tp": 2, "opt": "x"}, 2))
    assert (ranks.values, ranks.place, ranks.parameter) == (("1", "2", "4", "8", "16"), 1, None)
    assert (batch.values, batch.place) == (("1", "2", "4", "8", "16", "32"), 2)
    assert (rate.values[rate.place], rate.values[0]) == ("0.1", "0.0125")


def test_a_limit_beyond_slurms_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected a time limit"):
        slurm_seconds("99999999999-0")
