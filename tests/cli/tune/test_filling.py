"""Filling of a configuration into a command line, the environment, and a file."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crosswind.cli.verbs.tune.config_file import config_text, write_config
from crosswind.cli.verbs.tune.filling import exports_of, filled, variables
from crosswind.data.schema.errors import InvalidInputError

CONFIGURATION = {"bucket_mb": 25, "lr": 1e-05, "fused": True, "algo": "ring"}
SCALARS = st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def test_places_take_values_names_and_defaults() -> None:
    command = ["--bucket={bucket_mb}", "{lr}", "{fused}/{algo}", "{trial}", "{absent:7}", "{{lr}}", '{"a": {"b": 1}}']
    assert filled(command, CONFIGURATION, {"trial": "T1"}) == (
        *("--bucket=25", "1e-05", "true/ring", "T1", "7", "{lr}"),
        '{"a": {"b": 1}}',
    )


def test_a_place_of_nothing_is_refused_with_what_could_stand_there() -> None:
    with pytest.raises(InvalidInputError, match=r"\{bucket\} is none of algo, bucket_mb, fused, lr.*\{bucket:VALUE\}"):
        filled(["--bucket", "{bucket}"], CONFIGURATION, {})


def test_a_value_is_never_filled_again() -> None:
    assert filled(["{a}"], {"a": "{b}", "b": "x"}, {}) == ("{b}",)


def test_variables_have_our_prefix_and_keep_names_that_are_variables() -> None:
    environment = variables({"NCCL_ALGO": "Ring", "batch-size": 8, "fused": False}, {"batch-size": "BATCH"})
    assert environment == {
        "CROSSWIND_PARAM_NCCL_ALGO": "Ring",
        "CROSSWIND_PARAM_BATCH_SIZE": "8",
        "CROSSWIND_PARAM_FUSED": "false",
        "NCCL_ALGO": "Ring",
        "BATCH": "8",
    }


@pytest.mark.parametrize("word", ["x", "=Y", "x=", "x=1Y", "x=A B"])
def test_an_export_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(InvalidInputError, match="expected PARAMETER=VARIABLE"):
        exports_of([word])


@given(st.dictionaries(st.text(min_size=1), SCALARS))
def test_every_format_reads_back_what_was_written(configuration: dict[str, bool | int | float | str]) -> None:
    assert json.loads(config_text(".json", configuration)) == configuration
    assert (yaml.safe_load(config_text(".yaml", configuration)) or {}) == configuration
    assert tomllib.loads(config_text(".toml", configuration)) == configuration


def test_yaml_reads_small_numbers_as_numbers() -> None:
    assert yaml.safe_load(config_text(".yml", {"lr": 1e-05})) == {"lr": 1e-05}


def test_the_file_is_there_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.json"
    write_config(path, CONFIGURATION)
    assert json.loads(path.read_text()) == CONFIGURATION
    assert list(path.parent.iterdir()) == [path]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"ends in '\.ini', expected one of \.json, \.yaml, \.yml, \.toml"):
        write_config(tmp_path / "config.ini", CONFIGURATION)
