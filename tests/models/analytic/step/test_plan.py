from typing import Any

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.step.plan import Plan


def test_the_global_batch_counts_data_ranks_once() -> None:
    assert Plan(ranks=16, data=4, tensor=2, pipeline=2, micro_batch=3, micro_batches=5).global_batch == 60


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ranks": 8, "data": 2, "tensor": 2}, "data 2 x tensor 2 x pipeline 1 = 4, expected ranks = 8"),
        ({"ranks": 0, "data": 0}, "ranks is 0"),
        ({"ranks": 1, "zero_stage": 4}, "zero_stage is 4, expected 0 to 3"),
        ({"ranks": float("nan")}, "ranks is nan, expected a whole number"),
        ({"ranks": 1, "micro_batch": 1.5}, "micro_batch is 1.5, expected a whole number"),
        ({"ranks": 1, "schedule": "chimera"}, "schedule is 'chimera', expected gpipe, 1f1b or interleaved"),
        ({"ranks": 1, "offload": "all"}, "offload is 'all', expected none, optimizer or activations"),
        ({"ranks": 1, "interleave": 2}, "interleave is 2 with schedule 1f1b"),
        (
            {"ranks": 4, "pipeline": 4, "interleave": 2, "schedule": "interleaved", "micro_batches": 6},
            "micro_batches is 6 with schedule interleaved, expected a multiple of pipeline = 4",
        ),
        ({"ranks": 1, "bucket_bytes": 0.0}, "bucket_bytes is 0.0"),
    ],
)
def test_plans_that_nobody_can_run_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Plan(**fields)
