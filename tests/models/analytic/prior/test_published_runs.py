"""Ten published runs of Megatron-LM on 32 to 3,072 GPUs, none of which calibrates anything."""

import math

import pandas as pd
import pytest

from crosswind.data.devices.device import Device
from crosswind.data.devices.sheets import device_named
from crosswind.models.analytic.networks.transformer import Transformer
from crosswind.models.analytic.prior.prior import AnalyticPrior
from crosswind.models.analytic.step.memory import fits
from crosswind.models.analytic.step.plan import Plan

# Narayanan et al. 2021, table 1; micro-batches and chunks by Megatron-LM's examples/sc21/run_table_1.sh.
# layers, hidden, heads, tensor, pipeline, chunks, micro-batch, global batch, GPUs, measured TFLOP/s of a GPU
RUNS = [
    (24, 2304, 24, 1, 1, 1, 16, 512, 32, 137),
    (36, 4096, 32, 4, 1, 1, 16, 512, 128, 142),
    (48, 8192, 64, 8, 2, 1, 4, 1536, 512, 138),
    (80, 12288, 96, 8, 8, 2, 2, 2304, 1536, 148),
    (128, 25600, 160, 8, 64, 1, 1, 3072, 3072, 163),
]


def model(run: tuple[int, ...]) -> Transformer:
    return Transformer(layers=run[0], hidden=run[1], heads=run[2], sequence=2048, vocabulary=51200)


def described(run: tuple[int, ...]) -> pd.DataFrame:
    names = ["layers", "hidden", "heads", "tensor_parallel", "pipeline_parallel", "interleave", "micro_batch"]
    row = dict(zip([*names, "global_batch", "ranks"], run[:9], strict=True))
    return pd.DataFrame([{**row, "sequence": 2048, "vocabulary": 51200, "recompute": True, "accelerator": "A100"}])


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run[8]} GPUs")
def test_before_any_run_the_band_holds_the_published_time(run: tuple[int, ...]) -> None:
    measured = model(run).flops(run[7], recompute=True) / (run[8] * run[9] * 1e12)
    prediction = AnalyticPrior().predict(described(run))
    assert prediction.at(0.05)[0] < measured < prediction.at(0.95)[0]
    # The priors' efficiencies alone are a factor of 2 either way; their medians are no worse than half of that.
    assert abs(math.log(prediction.at(0.5)[0] / measured)) < math.log(2) / 2


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run[8]} GPUs")
def test_what_was_run_fits_into_memory(run: tuple[int, ...]) -> None:
    data = run[8] // (run[3] * run[4])
    plan = Plan(
        ranks=run[8],
        data=data,
        tensor=run[3],
        pipeline=run[4],
        micro_batch=run[6],
        micro_batches=run[7] // data // run[6],
        schedule="interleaved" if run[5] > 1 else "1f1b",
        interleave=run[5],
        recompute=True,
    )
    a100 = device_named("A100-SXM4-80GB")
    assert isinstance(a100, Device)
    assert fits(model(run).workload(recompute=True), plan, a100)
