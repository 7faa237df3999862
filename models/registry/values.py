"""Fitted models as JSON and raw members: dataclasses of ours made of plain values, arrays and boosters.

A file names classes; only dataclasses defined under their own name in `crosswind.models` or `crosswind.data` are made
from it, without calling their methods. Nothing else that a file names is ever looked up or called.
"""

import dataclasses
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from crosswind.data.schema.errors import InvalidInputError, MalformedError

if TYPE_CHECKING:  # heavy
    import xgboost as xgb

BOOSTER = ("xgboost.core", "Booster")
OURS = re.compile(r"crosswind\.(models|data)(\.[a-z][a-z0-9_]*)+")
DEPTH_MAX = 40
KINDS = "biufU"  # bool, integer, unsigned, float, text: kinds of arrays without objects in them
HEADER_START = 10  # bytes of an .npy file before its header; the last two are the length of that
ODD_FLOATS = ("nan", "inf", "-inf")
Members = dict[str, bytes]


class Encoder:
    """Turns a model into JSON values; `members` holds arrays and boosters as bytes."""

    def __init__(self) -> None:
        self.members: Members = {}

    def encode(self, value: Any, path: str = "model", depth: int = 0) -> Any:
        """Return the value as JSON. Raises: InvalidInputError naming the path of what cannot be saved."""
        if depth > DEPTH_MAX:
            raise InvalidInputError(f"{path}: expected at most {DEPTH_MAX} levels of values within values")
        if isinstance(value, np.generic) and value.dtype.kind in KINDS and value.dtype.itemsize <= 8:
            value = value.item()
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._record(value, path, depth)
        writers: Mapping[type, Callable[[Any, str, int], Any]] = {
            **dict.fromkeys((type(None), bool, int, str), lambda plain, *_: plain),
            float: lambda number, *_: number if math.isfinite(number) else {"float": str(number)},
            list: self._items,
            tuple: lambda *given: {"tuple": self._items(*given)},
            dict: self._pairs,
            np.ndarray: self._array,
        }
        is_booster = (type(value).__module__, type(value).__qualname__) == BOOSTER
        write = self._booster if is_booster else writers.get(type(value))
        if write is None:
            raise InvalidInputError(
                f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be saved: expected "
                "numbers, texts, arrays, boosters, or lists, tuples, dicts and dataclasses of ours made of these"
            )
        return write(value, path, depth)

    def _record(self, record: Any, path: str, depth: int) -> Any:
        kind = type(record)
        if not (OURS.fullmatch(kind.__module__) and kind.__qualname__.isidentifier()):
            raise InvalidInputError(f"{path} is a {kind.__module__}.{kind.__qualname__}, expected a dataclass of ours")
        defaults = {field.name: field.default for field in dataclasses.fields(record)}
        if strays := sorted(set(getattr(record, "__dict__", ())) - set(defaults)):
            raise InvalidInputError(f"{path} holds {', '.join(strays)} outside its fields, which would be lost")
        fields = {
            name: self.encode(getattr(record, name), f"{path}.{name}", depth + 1)
            for name, default in defaults.items()
            if getattr(record, name) is not None or default is not None  # many facts are None, and take no room
        }
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": fields}

    def _items(self, items: Any, path: str, depth: int) -> list[Any]:
        return [self.encode(item, f"{path}[{place}]", depth + 1) for place, item in enumerate(items)]

    def _pairs(self, mapping: Any, path: str, depth: int) -> Any:
        keys = self._items(mapping, f"{path} key", depth)
        values = [self.encode(value, f"{path}[{key!r}]", depth + 1) for key, value in mapping.items()]
        return {"dict": [list(pair) for pair in zip(keys, values, strict=True)]}

    def _array(self, array: Any, path: str, depth: int) -> Any:  # noqa: ARG002 - all writers are called alike
        if array.dtype.kind not in KINDS:
            raise InvalidInputError(f"{path} is an array of {array.dtype}, expected numbers, booleans or texts")
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
        return {"array": self._add("npy", stream.getvalue())}

    def _booster(self, booster: Any, path: str, depth: int) -> Any:  # noqa: ARG002 - all writers are called alike
        parameters = json.loads(booster.save_config())["learner"]["generic_param"]  # the model itself does not hold it
        return {"booster": self._add("json", bytes(booster.save_raw("json"))), "n_threads": int(parameters["nthread"])}

    def _add(self, ending: str, content: bytes) -> str:
        name = f"{len(self.members)}.{ending}"
        self.members[name] = content
        return name


class Decoder:
    """Turns JSON values and members back into a model."""

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self._members = members
        self._readers: Mapping[str, Callable[[Any, int], Any]] = MappingProxyType(
            {
                "float": self._float,
                "tuple": self._tuple,
                "dict": self._dict,
                "array": self._array,
                "booster": self._booster,
                "class": self._record,
            }
        )

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Return what was encoded. Raises: MalformedError."""
        if depth > DEPTH_MAX:
            raise MalformedError(f"values within values are more than {DEPTH_MAX} levels deep")
        if isinstance(value, list):  # mostly numbers and texts, which are what they mean
            return [self.decode(item, depth + 1) if isinstance(item, list | dict) else item for item in value]
        if not isinstance(value, dict):
            return value
        read = self._readers.get(next(iter(value), ""))
        if read is None:
            raise MalformedError(f"value {str(value)[:80]}: expected one of {', '.join(self._readers)}")
        return read(value, depth + 1)

    def _float(self, value: Any, depth: int) -> float:  # noqa: ARG002 - all readers are called alike
        if value["float"] not in ODD_FLOATS:
            raise MalformedError(f"float {str(value['float'])[:80]!r}: expected {', '.join(ODD_FLOATS)}")
        return float(value["float"])

    def _tuple(self, value: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(_list(value["tuple"]), depth))

    def _dict(self, value: Any, depth: int) -> dict[Any, Any]:
        pairs = [self.decode(_list(pair, of=2), depth) for pair in _list(value["dict"])]
        try:
            return dict(pairs)
        except TypeError as error:
            raise MalformedError(f"a dict's key cannot be one: {error}") from error

    def _array(self, value: Any, depth: int) -> Any:  # noqa: ARG002 - all readers are called alike
        name = str(value["array"])
        return read_array(self._member(name), name)

    def _booster(self, value: Any, depth: int) -> "xgb.Booster":  # noqa: ARG002 - all readers are called alike
        n_threads = value.get("n_threads")
        if type(n_threads) is not int:
            raise MalformedError(f"n_threads is {n_threads!r}, expected an integer")
        name = str(value["booster"])
        return read_booster(self._member(name), name, n_threads)

    def _record(self, value: Any, depth: int) -> Any:
        kind, fields = class_named(str(value["class"])), value.get("fields")
        fields_by_name = {field.name: field for field in dataclasses.fields(kind)}
        if not isinstance(fields, dict):
            raise MalformedError(f"{value['class']}: its fields are {str(fields)[:80]}, expected an object")
        if strange := sorted(set(fields) - set(fields_by_name)):
            raise MalformedError(f"{value['class']} has no field {', '.join(strange)[:80]}")
        made: Any = object.__new__(kind)
        for name, field in fields_by_name.items():
            held = self.decode(fields[name], depth) if name in fields else _default(value["class"], field)
            object.__setattr__(made, name, held)
        return made

    def _member(self, name: str) -> bytes:
        if name not in self._members:
            raise MalformedError(f"there is no member {name[:80]!r}")
        return self._members[name]


@lru_cache(maxsize=256)
def class_named(name: str) -> type:
    """Return the dataclass of ours named `module:name`. Raises: MalformedError for any other."""
    module_name, _, class_name = name.partition(":")
    refusal = f"class {name[:120]!r} is no dataclass of crosswind.models or crosswind.data of this version"
    if not OURS.fullmatch(module_name) or ".migrations" in module_name or not class_name.isidentifier():
        raise MalformedError(refusal)
    try:
        kind = vars(import_module(module_name)).get(class_name)
    except ImportError as error:
        raise MalformedError(refusal) from error
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module_name:
        return kind
    raise MalformedError(refusal)


def read_booster(content: bytes, name: str, n_threads: int) -> "xgb.Booster":
    """The booster of a JSON file. Raises: MalformedError.

    Not UBJSON, though that loads in a quarter of the time: with one flipped bit in it, XGBoost 3.2 did not return
    within 100 s. An empty file would make it abort the process, so it is refused first.
    """
    import xgboost as xgb  # noqa: PLC0415 - heavy, and few models hold one

    booster = xgb.Booster({"nthread": n_threads})
    try:
        json.loads(content)
        booster.load_model(bytearray(content))
    except (ValueError, RecursionError, xgb.core.XGBoostError) as error:  # XGBoost's own is a ValueError
        raise MalformedError(f"{name} is no booster: {str(error)[:120]}") from error
    return booster


def read_array(content: bytes, name: str) -> Any:
    """The array of an .npy file. Raises: MalformedError.

    No more memory is allocated than the file has bytes; numpy's own reader would allocate what the header claims.
    """
    start = HEADER_START + int.from_bytes(content[HEADER_START - 2 : HEADER_START], "little")
    try:
        shape, is_fortran, dtype = _header(content[:start])
    except (ValueError, SyntaxError, RecursionError) as error:
        raise MalformedError(f"{name} is no npy file: {str(error)[:120]}") from error
    is_plain = dtype.kind in KINDS and dtype.itemsize > 0 and all(length >= 0 for length in shape)
    if not is_plain or math.prod(shape) * dtype.itemsize != len(content) - start:
        held = len(content) - start
        raise MalformedError(f"{name} has {held} bytes, expected an array of {dtype} with shape {shape}"[:200])
    flat = np.frombuffer(content, dtype=dtype, offset=start)
    return flat.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


@lru_cache(maxsize=256)  # many arrays of a model have the same, and parsing one takes 0.03 ms
def _header(content: bytes) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    """Shape, order and type of an .npy file. Raises: ValueError, SyntaxError, RecursionError."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("expected version 1.0")
    return np.lib.format.read_array_header_1_0(stream)


def _default(kind: str, field: "dataclasses.Field[Any]") -> Any:
    """The default of a field that is missing in a file of an older version."""
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    raise MalformedError(f"{kind} lacks the field {field.name}")


def _list(value: object, *, of: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (of is not None and len(value) != of):
        raise MalformedError(f"value {str(value)[:80]}: expected a list{f' of {of}' if of else ''}")
    return value
