import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.space.space import Space

DEGREES = {name: {"kind": "ordinal", "values": [1, 2, 4, 8]} for name in ("dp", "tp", "pp")}
PARALLEL = {"parameters": DEGREES, "constraints": ["dp * tp * pp == ranks", "tp <= 4"], "facts": {"ranks": 8}}
STAGES = {
    "stage": {"kind": "int", "low": 0, "high": 3, "log": False},
    "offload": {"kind": "categorical", "values": ["none", "cpu", "nvme"], "when": "stage >= 2"},
    "pinned": {"kind": "boolean", "when": "offload == 'cpu'", "description": "page-locked host memory"},
}
ENDLESS = {
    "parameters": {
        "lr": {"kind": "float", "low": 1e-4, "high": 1.0, "log": True},
        "momentum": {"kind": "float", "low": 0.0, "high": 1.0},
        "nesterov": {"kind": "boolean", "when": "momentum > 0.5"},
        "batch": {"kind": "ordinal", "values": [8, 16, 32]},
    },
    "constraints": ["lr * batch < 1", "nesterov or lr < 0.1"],
}
MEMORY = {
    "parameters": {
        "dp": {"kind": "ordinal", "values": [1, 2, 4, 8]},
        "tp": {"kind": "ordinal", "values": [1, 2, 4, 8]},
        "micro_batch": {"kind": "ordinal", "values": [1, 8, 64]},
        "zero_stage": {"kind": "int", "low": 0, "high": 3},
        "offload": {"kind": "categorical", "values": ["none", "cpu"], "when": "zero_stage >= 2"},
    },
    "constraints": ["dp * tp == ranks", "fits_memory"],
    "facts": {"ranks": 8},
    "transformer": {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "sequence": 2048,
        "vocabulary": 32000,
        "device": "A100-SXM-80GB",
    },
}


def test_only_what_meets_the_constraints_is_listed() -> None:
    space = Space.from_json(PARALLEL)
    listed = [
        (configuration["dp"], configuration["tp"], configuration["pp"]) for configuration in space.configurations()
    ]
    every = itertools.product([1, 2, 4, 8], repeat=3)
    assert sorted(listed) == sorted(degrees for degrees in every if math.prod(degrees) == 8 and degrees[1] <= 4)
    assert space.size == len(listed) == 9


def test_parameters_are_absent_where_they_do_not_apply() -> None:
    listed = [dict(configuration) for configuration in Space.from_json(STAGES).configurations()]
    assert {"stage": 0} in listed
    assert {"stage": 2, "offload": "none"} in listed
    assert {"stage": 3, "offload": "cpu", "pinned": True} in listed
    assert len(listed) == 2 + 2 * (2 + 2) == Space.from_json(STAGES).size


@pytest.mark.parametrize("definition", [PARALLEL, STAGES, ENDLESS, MEMORY])
def test_json_with_requirements_goes_in_and_comes_out(definition: dict[str, object]) -> None:
    once = Space.from_json(definition).as_json()
    assert Space.from_json(json.loads(json.dumps(once))).as_json() == once
    assert once.get("constraints") == definition.get("constraints")


def test_a_parameter_may_be_called_parameters() -> None:
    odd = {"parameters": {"kind": "boolean"}}
    assert Space.from_json(odd).as_json() == odd
    assert Space.from_json({"parameters": {"kind": {"kind": "boolean"}}}).as_json() == {"kind": {"kind": "boolean"}}


@pytest.mark.parametrize("definition", [PARALLEL, STAGES, MEMORY])
def test_a_configuration_is_listed_exactly_when_it_is_contained(definition: dict[str, object]) -> None:
    space = Space.from_json(definition)
    choices = [[None, *(domain.values() or ())] for domain in space.domains.values()]
    contained = set()
    for values in itertools.product(*choices):
        configuration = {name: value for name, value in zip(space.domains, values, strict=True) if value is not None}
        if space.contains(configuration):
            contained.add(space.key(configuration))
    assert contained == {space.key(listed) for listed in space.configurations()}
    assert len(contained) == space.size


@pytest.mark.parametrize("definition", [PARALLEL, STAGES, ENDLESS, MEMORY])
@pytest.mark.parametrize("seed", range(3))
def test_random_ones_and_neighbours_are_valid_and_distinct(definition: dict[str, object], seed: int) -> None:
    space = Space.from_json(definition)
    drawn = space.random(8, seed)
    assert len({space.key(draw) for draw in drawn}) == len(drawn) == min(8, space.size)
    assert space.random(3, seed) == drawn[:3]
    for configuration in drawn:
        near = space.neighbours(configuration, 4, seed)
        assert all(space.contains(other) for other in (*near, configuration))
        assert any(space.key(other) != space.key(configuration) for other in near)


def test_a_neighbour_changes_two_parameters_that_a_constraint_binds() -> None:
    near = Space.from_json(PARALLEL).neighbours({"dp": 8, "tp": 1, "pp": 1}, 20, 0)
    assert {"dp": 4, "tp": 2, "pp": 1} in near
    assert {"dp": 1, "tp": 1, "pp": 8} in near
    assert {"dp": 2, "tp": 2, "pp": 2} not in near


@pytest.mark.parametrize(
    ("configuration", "says"),
    [
        ({"stage": 1, "offload": "cpu"}, "offload is 'cpu', expected none: it applies only when stage >= 2"),
        ({"stage": 2}, "offload is missing, expected one of 'none', 'cpu', 'nvme' when stage >= 2"),
        ({"stage": 2, "offload": "cpu"}, "pinned is missing"),
        ({"stage": 2, "offload": None}, "offload is None, expected one of"),
        ({"stage": 1, "offload": None}, "offload is None, expected one of"),
        ({"stage": True}, "stage is True, expected a whole number"),
        ({"stage": 1, "extra": 1}, "extra is unknown"),
        ({"stage": [1]}, r"stage is \[1\]"),
        ({}, "stage is missing"),
    ],
)
def test_an_invalid_configuration_is_refused(configuration: dict[str, object], says: str) -> None:
    space = Space.from_json(STAGES)
    for listed in space.configurations():
        space.key(listed)  # all allowed values are cached by then
    with pytest.raises(InvalidInputError, match=says):
        space.key(configuration)  # type: ignore[arg-type]
    assert not space.contains(configuration)  # type: ignore[arg-type]


def test_a_broken_constraint_is_named_with_its_values() -> None:
    space = Space.from_json(PARALLEL)
    for _ in range(2):
        with pytest.raises(
            InvalidInputError, match=r"does not meet 'dp \* tp \* pp == ranks' with dp = 8, pp = 1, tp = 2"
        ):
            space.key({"dp": 8, "tp": 2, "pp": 1})


def test_keys_tell_absent_from_present_and_true_from_one() -> None:
    space = Space.from_json(STAGES)
    keys = [space.key(configuration) for configuration in space.configurations()]
    assert len(set(keys)) == len(keys)
    assert [space.key(configuration) for configuration in space.configurations()] == keys  # the second time from memory
    assert keys[0] == json.dumps([0.0, None, None])


def test_what_does_not_apply_lies_in_the_middle_with_its_own_coordinate() -> None:
    points = Space.from_json(STAGES).coordinates([{"stage": 0}, {"stage": 3, "offload": "cpu", "pinned": True}])
    third = 1 / 3
    assert points.tolist() == pytest.approx(np.array([[0, third, third, third, 0, 0.5, 0], [1, 0, 1, 0, 1, 1, 1]]))


def test_memory_that_does_not_suffice_rules_out() -> None:
    space = Space.from_json(MEMORY)
    configurations = space.configurations()
    # 6.9e9 weights of 16 bytes are 110 GB on a device of 80 GB: not unsharded, but split over eight.
    assert not any(configuration["tp"] == 1 and configuration["zero_stage"] == 0 for configuration in configurations)
    assert any(configuration["tp"] == 8 and configuration["zero_stage"] == 0 for configuration in configurations)
    assert any(configuration["tp"] == 1 and configuration["zero_stage"] == 3 for configuration in configurations)
    biggest = {configuration["micro_batch"] for configuration in configurations if configuration["tp"] == 1}
    assert biggest == {1}
    assert (
        Space.from_json({**MEMORY, "constraints": ["dp * tp == ranks", "memory_needed_bytes < 60e9"]}).size < space.size
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"constraints": ["dp * tp * pp == 7"]}, r"'dp \* tp \* pp == 7' leaves no configuration"),
        ({"constraints": ["dp > tp", "tp > pp", "pp > dp"]}, "'pp > dp' leaves no configuration beside 'dp > tp', 'tp"),
        ({"constraints": ["dp % 0 == 0"]}, r"leaves no configuration \(division by zero\)"),
        ({"constraints": ["dp == 'two' or dp < 'x'"]}, r"leaves no configuration .*text 'x'"),
        ({"constraints": ["gpus > 1"]}, "names gpus, expected only dp, tp, pp, ranks"),
        ({"constraints": ["dp * tp"]}, "is neither true nor false, expected a comparison"),
        ({"constraints": ["dp == 1 or 2"]}, "is neither true nor false"),
        ({"constraints": [3]}, "expression '3': expected .* of text"),
        ({"constraints": "dp == 1"}, "constraints is 'dp == 1', expected a list"),
        ({"constraints": ["fits_memory"]}, "names fits_memory"),
        ({"facts": {"dp": 3}}, "facts: dp is a parameter too"),
        ({"facts": {"x": [1]}}, r"facts: x is \[1\], expected a number"),
        ({"facts": {"x": math.nan}}, "facts: x is nan"),
        ({"facts": [1]}, r"facts is \[1\], expected an object"),
        ({"limit": 3}, "the space has no field 'limit', expected parameters, constraints"),
        ({"parameters": {}, "constraints": []}, "no parameters"),
        ({"parameters": {name: {"kind": "boolean", "when": "ab".strip(name)} for name in "ab"}, "constraints": []},
         "parameter a: when: it hangs on itself through a, b"),
        ({"parameters": {"a": {"kind": "boolean", "when": "c == 1"}}}, "parameter a: when: expression 'c == 1' names"),
        ({"parameters": {"a": {"kind": "boolean", "when": 3}}}, "parameter a: when: expression '3'"),
        ({"parameters": {"a": {"kind": "boolean", "description": 3}}}, "parameter a: description is 3"),
        ({"transformer": {"layers": 2}}, "transformer: hidden is None, expected a whole number"),
        ({"transformer": {**MEMORY["transformer"], "device": "abacus"}}, "transformer: device is 'abacus', expected"),  # type: ignore[dict-item]
        ({"transformer": {**MEMORY["transformer"], "device_memory_bytes": -1}}, "device_memory_bytes is -1"),  # type: ignore[dict-item]
        ({"transformer": {**MEMORY["transformer"], "colour": 1}}, "transformer has no field 'colour'"),  # type: ignore[dict-item]
        ({"transformer": {**MEMORY["transformer"]}, "facts": {"data": 1}}, "mean the same"),  # type: ignore[dict-item]
    ],
)  # fmt: skip
def test_impossible_requirements_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Space.from_json({**PARALLEL, **change})


def test_a_division_by_zero_rules_out_only_where_it_happens() -> None:
    workers = {"batch": {"kind": "ordinal", "values": [4, 6]}, "workers": {"kind": "int", "low": 0, "high": 4}}
    listed = Space.from_json({"parameters": workers, "constraints": ["batch % workers == 0"]}).configurations()
    assert [(pair["batch"], pair["workers"]) for pair in listed] == [(4, 1), (4, 2), (4, 4), (6, 1), (6, 2), (6, 3)]
    guarded = Space.from_json({"parameters": workers, "constraints": ["workers == 0 or batch % workers == 0"]})
    assert {"batch": 4, "workers": 0} in guarded.configurations()


TEN = {f"p{place}": {"kind": "int", "low": 1, "high": 10} for place in range(10)}


def test_ten_parameters_of_ten_values_are_counted_without_trying_all() -> None:
    space = Space.from_json({"parameters": TEN, "constraints": [f"{' + '.join(TEN)} <= 13"]})
    # Ways to spread at most three further units over ten parameters: C(13, 3).
    assert space.size == len(space.configurations()) == math.comb(13, 3)
    assert space._points._n_expanded < 1000  # of 10 ** 10 combinations


def test_a_constrained_space_too_big_to_list_is_drawn_from_evenly() -> None:
    space = Space.from_json({"parameters": TEN, "constraints": ["p0 * p1 == 12", "p2 <= p3"]})
    assert space.size == 4 * 55 * 10**6
    assert not space.is_enumerable
    drawn = space.random(3000, seed=1)
    assert len(drawn) == 3000
    counts = Counter(configuration["p0"] for configuration in drawn)
    assert sorted(counts) == [2, 3, 4, 6]
    # 3000 draws, a quarter each: four standard errors are 4 * sqrt(3000 * 0.25 * 0.75) = 95.
    assert all(abs(count - 750) < 95 for count in counts.values())
    # Pairs p2 <= p3 are alike: the share with p2 = 1 is 10 / 55, four standard errors are 85.
    assert abs(sum(configuration["p2"] == 1 for configuration in drawn) - 3000 * 10 / 55) < 85


def test_constraints_too_tangled_to_count_are_still_drawn_from() -> None:
    tangled = [f"(p{a} * p{b}) % 7 != p{c} % 5" for a, b, c in itertools.combinations(range(10), 3) if (a + b * c) % 3]
    space = Space.from_json({"parameters": TEN, "constraints": tangled})
    assert space.size == 10**10  # an upper bound
    drawn = space.random(10, seed=0)
    assert len(drawn) == 10
    assert all(space.contains(configuration) for configuration in drawn)


def test_an_unmeetable_demand_on_real_numbers_is_named() -> None:
    numbers = {name: {"kind": "float", "low": 0, "high": 1} for name in "xy"}
    space = Space.from_json({"parameters": numbers, "constraints": ["x == 2 * y + 0.1"]})
    with pytest.raises(InvalidInputError, match=r"'x == 2 \* y [+] 0.1'.* leave next to no configuration"):
        space.random(1, seed=0)
    with pytest.raises(InvalidInputError, match=r"'x > 1 [+] y' leaves no configuration"):
        Space.from_json({"parameters": numbers, "constraints": ["x > 1 + y"]})


def test_real_numbers_are_drawn_evenly_where_they_are_valid() -> None:
    numbers = {name: {"kind": "float", "low": 0, "high": 1} for name in "xy"}
    drawn = Space.from_json({"parameters": numbers, "constraints": ["x + y < 1"]}).random(2000, seed=0)
    below_half = [float(configuration["x"]) < 0.5 for configuration in drawn]
    assert np.mean(below_half) == pytest.approx(0.75, abs=0.04)  # of the triangle; four standard errors


NUMBERS = st.sampled_from(["a", "b", "c", "1", "2", "3"])
TERMS = st.builds("({} {} {})".format, NUMBERS, st.sampled_from("+-*%"), NUMBERS)
CLAIMS = st.builds("{} {} {}".format, TERMS, st.sampled_from(["<", "<=", "==", "!="]), TERMS | NUMBERS)
CONSTRAINTS = st.lists(st.builds("({}) {} ({})".format, CLAIMS, st.sampled_from(["and", "or"]), CLAIMS), max_size=3)


@settings(max_examples=40, deadline=None)
@given(constraints=CONSTRAINTS, when=CLAIMS, seed=st.integers(0, 99))
def test_listing_agrees_with_trying_every_combination(constraints: list[str], when: str, seed: int) -> None:
    parameters = {name: {"kind": "int", "low": -1, "high": 3} for name in "ab"}
    parameters["c"] = {"kind": "ordinal", "values": [2, 0, 5], "when": when.replace("c", "a")}  # type: ignore[dict-item]
    free = Space.from_json(parameters).configurations()
    expected = sorted(str(dict(configuration)) for configuration in free if _meets(configuration, constraints))
    if not expected:
        with pytest.raises(InvalidInputError, match=r"leaves? |neither true"):
            Space.from_json({"parameters": parameters, "constraints": constraints})
        return
    space = Space.from_json({"parameters": parameters, "constraints": constraints})
    valid = [dict(configuration) for configuration in space.configurations()]
    assert sorted(map(str, valid)) == expected
    assert all(space.contains(configuration) is _meets(configuration, constraints) for configuration in free)
    assert all(space.contains(neighbour) for at in valid[:2] for neighbour in space.neighbours(at, 2, seed))


def _meets(configuration: object, constraints: list[str]) -> bool:
    """Return whether it meets the constraints by Python's own evaluation; names that are absent demand nothing."""
    for text in constraints:
        left, word, right = text[1:-1].partition(") and (") if ") and (" in text else text[1:-1].partition(") or (")
        sides = [_side(side, configuration) for side in (left, right)]
        decisive = "or" in word
        if decisive in sides:
            verdict: object = decisive
        elif "error" in sides:
            verdict = False
        else:
            verdict = "absent" in sides or not decisive
        if not verdict:
            return False
    return True


def _side(text: str, configuration: object) -> object:
    # Both parts of a comparison have a value, or it has none: an error weighs more than an absent parameter.
    try:
        return eval(text, {}, dict(configuration))  # type: ignore[call-overload]
    except NameError:
        return _with_absent(text, configuration)
    except ZeroDivisionError:
        return "error"


def _with_absent(text: str, configuration: object) -> str:
    for part in text.replace("(", ")").split(")"):
        try:
            eval(part.strip() or "0", {}, dict(configuration))  # type: ignore[call-overload]
        except ZeroDivisionError:
            return "error"
        except (NameError, SyntaxError):
            continue
    return "absent"
