from typing import Any

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.facts import Facts, bytes_fact, count_fact, text_fact, version_in


def test_facts_that_one_source_lacks_come_from_the_other() -> None:
    newer, older = Facts(accelerator="H100", node_count=4), Facts(accelerator="A100", cuda="12.4")
    assert newer.over(older) == Facts(accelerator="H100", node_count=4, cuda="12.4")
    assert newer.given == {"accelerator": "H100", "node_count": 4}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gpu": "H100"}, "fact 'gpu' is unknown, expected one of accelerator, accelerators, "),
        ({"accelerators": 0}, "fact accelerators is 0, expected a whole number from 1 to 10000000"),
        ({"accelerators": 2.5}, "fact accelerators is 2.5, expected a whole number"),
        ({"node_count": True}, "fact node_count is True, expected a whole number"),
        ({"accelerators_per_node": -1}, "fact accelerators_per_node is -1, expected a whole number from 0"),
        (
            {"accelerator_memory_bytes": float("nan")},
            "fact accelerator_memory_bytes is nan, expected a number of bytes",
        ),
        ({"accelerator": ""}, "fact accelerator is '', expected a printable text of 1 to 1000 characters"),
        ({"driver": "5\x1b[2J"}, "expected a printable text"),
        ({"cuda": 12.4}, "fact cuda is 12.4, expected a printable text"),
    ],
)
def test_what_is_no_fact_is_refused_by_name_and_value(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Facts.of(values)
    assert message in str(raised.value)


def test_of_what_a_machine_states_the_valid_part_is_kept() -> None:
    stated = {"accelerator": "H100", "driver": "\x00", "processors_per_node": 0, "cuda": None}
    assert Facts.of_valid(stated) == Facts(accelerator="H100")


@pytest.mark.parametrize("text", ["", "  ", "N/A", "n/a", "TODO", "none", 7, None])
def test_words_that_say_nothing_are_no_fact(text: object) -> None:
    assert text_fact(text) is None


def test_a_fact_is_printable_and_short() -> None:
    assert text_fact(" 8x NDR\n400Gb/s ") == "8x NDR 400Gb/s"
    assert len(text_fact("x" * 5000) or "") == 1000


@pytest.mark.parametrize(
    ("value", "count"), [("8", 8), (8, 8), (" 8 ", 8), ("0", None), (0, None), ("8.0", None), (True, None), ("²", None)]
)
def test_counts_are_whole_numbers_also_as_text(value: object, count: int | None) -> None:
    assert count_fact(value) == count


def test_none_of_a_kind_is_a_count_where_it_may_be() -> None:
    assert count_fact("0", least=0) == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80 GB", 80e9),
        ("80GB", 80e9),
        ("32GiB", 32 * 2.0**30),
        ("16 GB GDDR6 / Card", 16e9),
        ("1.5TB", 1.5e12),
        ("80", None),
        ("eighty GB", None),
        ("", None),
        (80, None),
    ],
)
def test_a_size_without_a_unit_is_not_guessed(text: object, size: float | None) -> None:
    assert bytes_fact(text) == size


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("PyTorch v2.4.1a0", "2.4.1"),
        ("PyTorch NVIDIA Release 24.04", "24.04"),
        ("Tensorflow-v1.15.0", "1.15.0"),
        ("MXNet", None),
        ("cuda 11", "11"),
    ],
)
def test_the_first_version_in_a_text(text: str, version: str | None) -> None:
    assert version_in(text) == version
