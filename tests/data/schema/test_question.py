import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.next_run.made_up_runs import rows

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import LikeRun, Question, check_degrees
from crosswind.data.schema.run import Run, RunState
from crosswind.models.next_run.cohort_store import CohortStore, ended_runs, key_of, questions_of


def asked(world_size: int = 8, **configuration: Any) -> Question:
    return Question("gpt", "lab", configuration, world_size)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, None, [1], {"a": 1}])
def test_a_value_that_is_no_text_and_no_finite_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"configuration batch is .*, expected a text or a finite number"):
        asked(batch=value)


@pytest.mark.parametrize("world_size", [0, -1, 10_000_001])
def test_a_scale_that_cannot_be_is_refused(world_size: int) -> None:
    with pytest.raises(InvalidInputError, match=f"world_size {world_size}: expected 1 to 10000000"):
        asked(world_size)


def test_more_nodes_than_ranks_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="node_count 9: expected 1 to the 8 ranks"):
        Question("gpt", "lab", {}, 8, 9)


def test_degrees_that_multiply_to_the_ranks_are_taken() -> None:
    check_degrees(asked(dp=2, tp=2, pp=2))
    check_degrees(asked(dp=2, tp=2, pp=1, cp=2))
    check_degrees(asked(tp=4))


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"dp": 2, "tp": 2, "pp": 1}, "data 2 x tensor 2 x pipeline 1 make 4 ranks, expected 8"),
        ({"dp": 2, "tp": 2, "pp": 2, "cp": 2}, "make 16 ranks, expected 8"),
        ({"tp": 3}, "tensor 3 do not divide 8 ranks"),
        ({"tp": True}, "tp is True, expected a whole number"),
        ({"tp": "2"}, "tp is '2', expected a whole number"),
    ],
)
def test_degrees_that_do_not_are_refused(configuration: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_degrees(asked(**configuration))


def test_a_whole_fraction_is_the_same_cohort_and_a_text_or_a_truth_value_is_another() -> None:
    assert key_of(asked(batch=8.0)) == key_of(asked(batch=8))
    assert len({key_of(asked(batch=value)) for value in (1, "1", True)}) == 3


@given(
    st.dictionaries(
        st.text(), st.text() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_a_cohort_is_named_in_sorted_json(configuration: dict[str, Any]) -> None:
    plain = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in configuration.items()}
    assert key_of(Question("gpt", "lab", configuration, 8)) == json.dumps(["gpt", "lab", plain, 8], sort_keys=True)


def test_the_order_of_parameters_does_not_matter() -> None:
    assert key_of(asked(a=1, b=2)) == key_of(asked(b=2, a=1))


def test_odd_recorded_values_are_left_out_or_written_as_json() -> None:
    odd = {"lr": float("nan"), "seed": 10**400, "none": None, "betas": [0.9, 0.95], "batch": 8}
    [question] = questions_of(rows(("gpt", "lab", odd, 8, 1.0)))
    assert question.configuration == {"batch": 8, "betas": "[0.9, 0.95]"}


@pytest.mark.parametrize(("nodes", "expected"), [(None, None), (float("nan"), None), (0, None), (2.0, 2), (99, 8)])
def test_a_recorded_number_of_nodes_is_one_that_can_be_or_none(nodes: float | None, expected: int | None) -> None:
    [question] = questions_of(rows(("gpt", "lab", {}, 8, 1.0)).assign(node_count=[nodes]))
    assert question.node_count == expected


def test_a_cohort_keeps_its_newest_200_runs_and_counts_all() -> None:
    many = rows(*(("gpt", "lab", {}, 1, float(number + 1)) for number in range(230)))
    book = CohortStore.of(questions_of(many), ended_runs(many))
    [cohort] = book.cohorts.values()
    assert (cohort.count, len(cohort.seconds), cohort.run_ids[0]) == (230, 200, "r30")
    assert cohort.median == 130.5  # of 31 ... 230 s


EARLIER = Run(
    "r1",
    "gpt",
    "lab",
    RunState.COMPLETED,
    world_size=16,
    configuration={"batch": 8, "fused": True},
    nodes=("n1", "n2"),
)


def test_a_run_like_another_is_the_same_question() -> None:
    assert LikeRun("r1").question(EARLIER) == Question("gpt", "lab", {"batch": 8, "fused": True}, 16, 2)


def test_what_is_given_replaces_what_the_run_had() -> None:
    like = LikeRun("r1", "bert", "other", {"batch": 16, "zero": 3}, 4, 4)
    assert like.question(EARLIER) == Question("bert", "other", {"batch": 16, "fused": True, "zero": 3}, 4, 4)


@pytest.mark.parametrize(("ranks", "nodes"), [(64, 8), (8, 1), (20, 3), (1, 1)])
def test_on_other_ranks_a_node_has_as_many_as_before(ranks: int, nodes: int) -> None:
    assert LikeRun("r1", world_size=ranks).question(EARLIER).node_count == nodes


def test_nodes_that_are_unknown_stay_so() -> None:
    assert LikeRun("r1", world_size=64).question(replace(EARLIER, nodes=())).node_count is None


def test_a_run_without_ranks_needs_them() -> None:
    silent = replace(EARLIER, world_size=None)
    with pytest.raises(InvalidInputError, match="world_size: run r1 does not say how many ranks it had"):
        LikeRun("r1").question(silent)
    assert LikeRun("r1", world_size=4).question(silent).world_size == 4
