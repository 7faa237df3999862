import io
import json
import math
import tracemalloc
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.run import RunState
from crosswind.models.baseline import Ewma
from crosswind.models.registry.archive import DIGEST, EPOCH, MODEL, _digest, read_model, write_model
from crosswind.models.surrogate import XgboostQuantileSurrogate
from crosswind.models.surrogate.columns import Columns
from crosswind.models.surrogate.conformal import ConformalSurrogate

COLUMNS = "crosswind.models.surrogate.columns:Columns"


def table(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(5)
    return pd.DataFrame({"batch": random.integers(1, 9, rows), "kind": random.choice(["a", "b", ""], rows)})


def fitted() -> ConformalSurrogate:
    X = table(60)
    seconds = X["batch"].to_numpy(np.float64) * np.random.default_rng(6).lognormal(0, 0.1, 60)
    return ConformalSurrogate(XgboostQuantileSurrogate(seed=3, n_rounds=10)).fit(X, seconds)


def packed(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, compress_type=compression)
    return stream.getvalue()


def forged(model: Any, **members: bytes) -> bytes:
    """A file with the right digest, as somebody who wants to do harm would write it."""
    named = {name.replace("_", ".", 1): content for name, content in members.items()}
    every = {MODEL: json.dumps({"format": 1, "model": model}).encode(), **named}
    return packed({**every, DIGEST: _digest(every).encode()})


def record(name: str, **fields: Any) -> Any:
    return {"class": name, "fields": fields}


def test_a_fitted_surrogate_predicts_the_same_after_it_was_saved() -> None:
    model, later = fitted(), table(7)
    restored = read_model(write_model(model))
    assert isinstance(restored, ConformalSurrogate)
    assert restored.promised_coverage == model.promised_coverage
    assert np.array_equal(restored.predict(later).values, model.predict(later).values)


def test_a_restored_booster_uses_as_many_threads_as_before() -> None:
    restored = read_model(write_model(booster()))
    config = json.loads(restored.save_config())
    assert config["learner"]["generic_param"]["nthread"] == "1"


def test_equal_models_have_equal_files() -> None:
    assert write_model(fitted()) == write_model(fitted())


def test_a_model_that_was_not_fitted_comes_back_as_such() -> None:
    model = ConformalSurrogate(XgboostQuantileSurrogate(seed=9))
    assert read_model(write_model(model)) == model


def test_every_kind_of_value_comes_back_as_it_was() -> None:
    held: dict[Any, Any] = {
        "none": None,
        "numbers": [True, -3, 2**70, 0.1, -0.0, 5e-324],
        (1, "key"): {2: ("nested", ())},
        "odd": [math.inf, -math.inf],
        "text": "na\u00efve \U0001f600 \x00 \ud800",
    }
    restored = read_model(write_model(Columns(held)))
    assert restored == Columns(held)
    assert [type(number) for number in restored.categories["numbers"]] == [bool, int, int, float, float, float]
    assert math.copysign(1, restored.categories["numbers"][4]) == -1


def test_nan_stays_nan() -> None:
    restored = read_model(write_model(Ewma(math.nan)))
    assert math.isnan(restored.newest_weight)


def test_numpy_numbers_become_pythons() -> None:
    restored = read_model(write_model(Ewma(np.float32(0.5))))  # type: ignore[arg-type]  # as sloppy models hold them
    assert (restored.newest_weight, type(restored.newest_weight)) == (0.5, float)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, np.nan], [-0.0, np.inf]]),
        np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        np.array([True, False]),
        np.array(["a", "b\u00e9"]),
        np.array(7, dtype=np.uint8),
        np.empty((0, 3)),
        np.arange(12).reshape(3, 4)[:, ::2],
    ],
)
def test_arrays_keep_type_shape_and_every_bit(array: Any) -> None:
    restored = read_model(write_model(Columns({"a": array}))).categories["a"]
    assert (restored.dtype, restored.shape, restored.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert restored.flags.writeable


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=12,
)


@given(held=PLAIN)
def test_whatever_is_plain_comes_back_equal(held: Any) -> None:
    assert read_model(write_model(Columns({"x": held}))) == Columns({"x": held})


@dataclass
class Elsewhere:
    """A dataclass that is not ours."""

    size: int = 0


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (lambda: 0, "model.categories['x'] is a builtins.function, which cannot be saved"),
        (Path("/"), "PosixPath, which cannot be saved"),
        (pd.DataFrame(), "DataFrame, which cannot be saved"),
        (np.random.default_rng(0), "Generator, which cannot be saved"),
        (OrderedDict(), "OrderedDict, which cannot be saved"),
        (RunState.LOST, "RunState, which cannot be saved"),
        (Elsewhere(), "Elsewhere, expected a dataclass of ours"),
        (np.array([object()]), "model.categories['x'] is an array of object"),
        (np.array([1j]), "an array of complex128"),
        (np.longdouble(1), "longdouble, which cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(held: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        write_model(Columns({"x": held}))
    assert message in str(refusal.value)


def test_state_outside_the_fields_is_not_lost_silently() -> None:
    model = XgboostQuantileSurrogate()
    model.stray = 1  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match="model holds stray outside its fields"):
        write_model(model)


def test_a_model_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(InvalidInputError, match="expected at most 40 levels"):
        write_model(Columns({"x": ring}))  # type: ignore[dict-item]


def test_every_truncation_is_refused() -> None:
    content = write_model(Columns({"x": np.arange(3)}))  # type: ignore[dict-item]
    for length in range(len(content)):
        with pytest.raises(MalformedError):
            read_model(content[:length])


def test_a_changed_byte_never_changes_the_model() -> None:
    model = Columns({"x": ("a", "b")})
    content = write_model(model)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x01
        try:
            assert read_model(bytes(changed)) == model  # a byte that means nothing, such as a time stamp's
        except MalformedError:
            continue


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "builtins:eval",
        "subprocess:Popen",
        "crosswind.data.lake.lake:Path",
        "crosswind.models.surrogate.columns:pd",
        "crosswind.models.surrogate.columns:np.ndarray",
        "crosswind.models.surrogate.surrogate:NotFittedError",
        "crosswind.models.surrogate:XgboostQuantileSurrogate",
        "crosswind.models.nowhere:Thing",
        "crosswind.data.catalog.migrations.env:context",
        "crosswind.data..errors:ProjectError",
        "crosswind.api.settings:ServerSettings",
        "crosswind.models/../api:X",
        f"{COLUMNS}.of",
        "",
        "x" * 5000,
    ],
)
def test_a_class_that_is_no_dataclass_of_ours_is_never_made(name: str) -> None:
    with pytest.raises(MalformedError, match=r"is no dataclass of crosswind.models or crosswind.data") as refusal:
        read_model(forged(record(name)))
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"call": ["os.system", "true"]}, "expected one of"),
        ({}, "expected one of"),
        ({"float": "0x1p9999"}, "expected nan, inf, -inf"),
        ({"tuple": {"0": 1}}, "expected a list"),
        ({"tuple": "abc"}, "expected a list"),
        ({"dict": [[1, 2, 3]]}, "expected a list of 2"),
        ({"dict": [[[1], 2]]}, "key cannot be one"),
        ({"array": "0.npy"}, "no member '0.npy'"),
        ({"array": "/etc/passwd"}, "no member"),
        ({"booster": "../../0.ubj", "n_threads": 1}, "no member"),
        ({"booster": MODEL}, "n_threads is None"),
        ({"booster": MODEL, "n_threads": 1}, "is no booster"),
        ({"array": MODEL}, "is no npy file"),
        (record(COLUMNS), "lacks the field categories"),
        (record(COLUMNS, categories={"dict": []}, further=1), "has no field further"),
        ({"class": COLUMNS, "fields": 7}, "its fields are 7, expected an object"),
        (json.loads('{"tuple": [' * 60 + "]}" * 60), "levels deep"),
    ],
)
def test_hostile_values_are_refused(model: Any, message: str) -> None:
    with pytest.raises(MalformedError) as refusal:
        read_model(forged(model))
    assert message in str(refusal.value)


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


@pytest.mark.parametrize(
    "content",
    [
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '<U500000000', 'fortran_order': False, 'shape': (1,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(9)),
        npy("__import__('os').system('true')"),
        b"\x93NUMPY\x02\x00",
        b"",
    ],
)
def test_an_array_takes_no_more_memory_than_its_file(content: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(MalformedError):
        read_model(forged({"array": "0.npy"}, **{"0_npy": content}))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = packed({MODEL: bytes(200_000_000)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1_000_000
    tracemalloc.start()
    with pytest.raises(MalformedError, match="is compressed"):
        read_model(bomb)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_members_that_share_their_bytes_are_refused() -> None:
    content = packed({"a": bytes(1000), "b": bytes(1000)})
    start, end = content.rindex(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    shared = bytearray(content[start:end])
    shared[42:46] = bytes(4)  # the second name's bytes are those of the first
    with pytest.raises(MalformedError):
        read_model(content[:1031] + content[1031 + 1031 : start] + bytes(shared) + content[end:])


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")  # zipfile's, on writing it
def test_a_member_that_stands_there_twice_is_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(MODEL, "{}")
        archive.writestr(MODEL, "[]")
    with pytest.raises(MalformedError, match="twice"):
        read_model(stream.getvalue())


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "/etc/cron.d/x", "a/../../b", "C:\\x"])
def test_a_member_named_like_a_path_is_written_nowhere(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    members = {MODEL: json.dumps({"format": 1, "model": record(COLUMNS, categories={"dict": []})}).encode(), name: b"x"}
    model = read_model(packed({**members, DIGEST: _digest(members).encode()}))
    assert model == Columns({})
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"format": 2, "model": 1}', b'{"format": 1}', b"[" * 100_000, b"\xff"]
)
def test_a_table_of_contents_that_is_none_is_refused(content: bytes) -> None:
    members = {MODEL: content}
    with pytest.raises(MalformedError):
        read_model(packed({**members, DIGEST: _digest(members).encode()}))


def test_bytes_that_are_no_model_are_refused() -> None:
    for content in (b"", b"PK", b"\x80\x04\x95", bytes(1000), packed({})):
        with pytest.raises(MalformedError):
            read_model(content)


def test_fields_that_an_older_version_did_not_have_get_their_default() -> None:
    older = record("crosswind.models.surrogate.xgboost_quantile:XgboostQuantileSurrogate", seed=4)
    assert read_model(forged(older)) == XgboostQuantileSurrogate(seed=4)


def test_making_a_model_from_a_file_calls_nothing_of_it() -> None:
    wrong = record("crosswind.data.schema.prediction:Prediction", levels={"tuple": [0.9, 0.1]}, values=3)
    assert read_model(forged(wrong)).levels == (0.9, 0.1)  # its __post_init__ would refuse


def test_a_surrogate_that_an_older_version_saved_with_its_booster_predicts_as_with_its_trees() -> None:
    X = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = XgboostQuantileSurrogate(n_rounds=5).fit(X, np.array([1.0, 2.0, 4.0, 8.0]))
    rows = xgb.QuantileDMatrix(np.eye(4), label=np.log([1.0, 2, 4, 8]) - model._centre, nthread=1)
    older = replace(model)
    older._centre, older._columns = model._centre, model._columns
    older._booster = xgb.train(model._parameters(), rows, num_boost_round=5)
    restored = read_model(write_model(older))
    assert restored.predict(X).values == pytest.approx(model.predict(X).values, rel=1e-5)  # 32 bits


def booster() -> xgb.Booster:
    return xgb.train({"nthread": 1}, xgb.DMatrix(np.eye(4), np.arange(4.0), nthread=1), num_boost_round=2)


def booster_json() -> bytes:
    return bytes(booster().save_raw("json"))


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_a_truncated_booster_is_refused(share: float) -> None:
    whole = booster_json()
    with pytest.raises(MalformedError, match="is no booster"):
        read_model(forged({"booster": "0.json", "n_threads": 1}, **{"0_json": whole[: int(len(whole) * share)]}))


@pytest.mark.parametrize("content", [b"{}", b"[]", b"null", bytes(50), b'{"learner": {}}', b"[" * 100_000])
def test_bytes_that_are_no_booster_are_refused(content: bytes) -> None:
    with pytest.raises(MalformedError, match="is no booster"):
        read_model(forged({"booster": "0.json", "n_threads": 1}, **{"0_json": content}))


def test_dataclasses_of_the_data_folder_are_ours_too() -> None:
    prediction = Prediction((0.1, 0.9), np.array([[1.0, 2.0]]))
    restored = read_model(write_model(prediction))
    assert isinstance(restored, Prediction)
    assert (restored.levels, restored.values.tolist()) == (prediction.levels, [[1.0, 2.0]])
