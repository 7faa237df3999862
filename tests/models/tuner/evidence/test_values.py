import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.evidence.units import UNITS, converted, number_in, split_name
from crosswind.models.tuner.evidence.values import configured_value, covered, fitted
from crosswind.models.tuner.space.space import Space

SPACE = Space.from_json(
    {
        "bucket_mib": {"kind": "float", "low": 1.0, "high": 64.0, "log": True},
        "workers": {"kind": "int", "low": 0, "high": 8, "log": False},
        "threads": {"kind": "ordinal", "values": [1, 2, 4]},
        "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
        "fused": {"kind": "boolean"},
    }
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("bucket_mib", 25, 25.0),
        ("bucket_mib", "25", 25.0),
        ("bucket_mib", "25 MiB", 25.0),
        ("bucket_mib", "1048576 bytes", 1.0),
        ("bucket_mib", "25 MB", None),  # 10^6 or 2^20: nobody knows
        ("bucket_mib", "25 ms", None),
        ("bucket_mib", 128.0, None),
        ("bucket_mib", True, None),
        ("workers", 4.0, 4),
        ("workers", "4", 4),
        ("workers", 4.5, None),
        ("workers", "four", None),
        ("threads", 2.0, 2),
        ("threads", "4", 4),
        ("threads", 3, None),
        ("threads", True, None),
        ("precision", "BF16", "bf16"),
        ("precision", "fp64", None),
        ("fused", 1, True),
        ("fused", "no", False),
        ("fused", "maybe", None),
        ("fused", 2, None),
    ],
)
def test_values_are_read_as_the_space_has_them(name: str, value: Parameter, expected: Parameter | None) -> None:
    read = fitted(name, SPACE.domains[name], value)
    assert read == expected
    assert type(read) is type(expected)


def test_a_name_may_differ_by_its_unit_alone() -> None:
    assert configured_value("bucket_mib", {"bucket_bytes": 2**21}) == 2.0
    assert configured_value("timeout_seconds", {"timeout_ms": "250"}) == 0.25
    assert configured_value("bucket_mib", {"bucket_mb": 2.0}) is None
    assert configured_value("bucket_mib", {"bucket_bytes": 2**21, "bucket_kib": 1.0}) is None  # which of them counts?
    assert configured_value("bucket", {"bucket_bytes": 2**21}) is None


def test_the_fault_is_named_where_the_space_is_not_covered() -> None:
    whole: dict[str, Parameter] = {
        "bucket_mib": "8",
        "workers": "2",
        "threads": 1.0,
        "precision": "fp32",
        "fused": "true",
        "seed": 7,
    }
    configuration, fault = covered(SPACE, whole)
    assert not fault
    SPACE.check(configuration)
    assert configuration == {"bucket_mib": 8.0, "workers": 2, "threads": 1, "precision": "fp32", "fused": True}
    assert covered(SPACE, {**whole, "workers": 9})[1] == "workers is outside the space"
    del whole["fused"]
    assert covered(SPACE, whole)[1] == "no parameter fused"


def test_a_parameter_that_does_not_apply_need_not_be_there_and_is_left_out() -> None:
    stages = {"kind": "ordinal", "values": [0, 1, 2]}
    space = Space.from_json(
        {
            "offload": {"kind": "boolean", "when": "stage >= 2"},
            "stage": stages,
            "pin": {"kind": "boolean", "when": "offload == true"},
        }
    )
    assert covered(space, {"stage": 1}) == ({"stage": 1}, "")
    assert covered(space, {"stage": 1, "offload": True}) == ({"stage": 1}, "")
    assert covered(space, {"stage": 2, "offload": False}) == ({"stage": 2, "offload": False}, "")
    assert covered(space, {"stage": 2})[1] == "no parameter offload"
    assert covered(space, {"stage": 2, "offload": True})[1] == "no parameter pin"


@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), st.floats(1e-6, 1e6))
def test_conversions_come_back(one: str, other: str, value: float) -> None:
    there = converted(value, one, other)
    assert (there is None) == (UNITS[one].dimension != UNITS[other].dimension)
    if there is not None:
        back = converted(there, other, one)
        assert back is not None
        assert math.isclose(back, value, rel_tol=1e-12)


@given(st.text(max_size=12))
def test_a_text_is_a_number_or_none(text: str) -> None:
    number = number_in(text, "seconds")
    assert number is None or math.isfinite(number)
    assert split_name(text)[0] or not text


@given(st.floats(1.0, 64.0))
def test_a_value_inside_stays_what_it_is_however_it_is_written(value: float) -> None:
    domain = SPACE.domains["bucket_mib"]
    assert fitted("bucket_mib", domain, value) == value == fitted("bucket_mib", domain, repr(value))
