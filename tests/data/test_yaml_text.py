import math

import pytest
import yaml

from crosswind.data.yaml_text import parsed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1e5", 1e5),
        ("1E5", 1e5),
        ("-1.5e+3", -1500.0),
        ("1.0e-05", 1e-5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1_000", 1000),
        ("1_000.5", 1000.5),
        ("+7", 7),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("-.inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("on", "on"),
        ("off", "off"),
        ("Yes", "Yes"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("1e", "1e"),
        ("e5", "e5"),
        ("_1", "_1"),
        ("1__0", "1__0"),
        ("1.2.3", "1.2.3"),
        ("'1e5'", "1e5"),
        ("[1e-5, on]", [1e-5, "on"]),
    ],
)
def test_words_are_what_the_core_schema_says(text: str, value: object) -> None:
    read = parsed(text)
    assert (read, type(read)) == (value, type(value))


def test_what_other_programs_write_for_version_1_1_reads_the_same() -> None:
    written = {"lr": 1e-05, "big": 1e16, "n": 7, "text": "on", "flag": True, "none": None, "l": [0.1]}
    assert parsed(yaml.safe_dump(written)) == written


@pytest.mark.parametrize("text", ["a: [", "!!python/object:os.system x", "a: b: c", "- 1\nb: 2", "9" * 5000])
def test_what_is_no_yaml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(text)
