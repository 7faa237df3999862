"""Texts that JSON and databases may hold and a store may not: zero characters, halves of characters, endless names."""

import json
from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.scalars import flat, scalar_of, storable


def load(tmp_path: Path, path: Path) -> Loaded:
    loaded = Loaded()
    with Store.open(tmp_path / "store") as store:
        load_file(store, path, reader_for(path), loaded, context=Context("lab"))
    return loaded


def test_names_that_are_no_text_cost_their_value_alone(tmp_path: Path) -> None:
    state = json.loads((RECORDINGS / "trainer_state/trainer_state.json").read_text())
    entry = {"step": 1, "loss": 1.0, "\ud800": 2.0, "a\0b": 3.0, "x" * 1001: 4.0, "": 5.0}
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(state | {"log_history": [entry], "trial_name": "\ud800\0"}))
    loaded = load(tmp_path, path)
    assert loaded.rows == 1
    assert [skipped.reason for skipped in loaded.reports[0].quoted] == [
        r"name '\ud800' has characters that no text has",
        r"name 'a\x00b' has characters that no text has",
        "name of 1001 characters; expected 1 to 1000",
        "name of 0 characters; expected 1 to 1000",
    ]


@pytest.mark.parametrize("value", ["\ud800", "a\0b"])
def test_a_search_over_values_that_are_no_text_is_refused(tmp_path: Path, value: str) -> None:
    cache = json.loads((RECORDINGS / "kernel_tuner/scale.json").read_text())
    entry = {"block": 1, "rounds": 1, "mode": value, "time": 1.0}
    search = {"tune_params": cache["tune_params"] | {"mode": ["a", value]}, "cache": {"x": entry}}
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(cache | search))
    with pytest.raises(MalformedError, match="has characters that no text has"):
        load(tmp_path, path)


def test_texts_of_configurations_are_made_storable() -> None:
    assert storable("a\0\ud800b", 3) == "a\ufffd?"
    assert flat({"a\0": "\ud800", "n": {"x": 1 << 70, "y": None, "z": [{}, 1]}}) == {
        "a\ufffd": "?",
        "n.x": "beyond 62 bits",
        "n.z": "2 values",
    }
    assert [scalar_of(text) for text in ("12", "-1e-3", "True", "1,5", "1" * 16)] == [
        12,
        -0.001,
        True,
        "1,5",
        1111111111111111.0,
    ]


def test_a_configuration_that_never_ends_is_refused() -> None:
    nested: dict[str, object] = {}
    for _ in range(30):
        nested = {"a": nested}
    with pytest.raises(MalformedError, match="nested more than 20 deep"):
        flat(nested)
    with pytest.raises(MalformedError, match="more than 2000 parameters"):
        flat({str(number): number for number in range(2001)})
