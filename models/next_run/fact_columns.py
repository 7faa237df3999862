"""Facts about systems and software as columns that surrogates learn from."""

from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from crosswind.data.devices.device import Device
from crosswind.data.devices.links import network_named
from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.question import Question
from crosswind.models.next_run.completion import device_of

DEVICE = "device."  # prefix of a known device's peak figures, which mean the same on every system
FACT = "fact."  # prefix of what the source of a run states
MODEL = f"{FACT}device"  # its name in the table of devices, else as the source names it
DATE = f"{FACT}date"
YEARS_MIN = 1.0  # of dates: the trend of a shorter time is no trend of software
NS = 1e-9
# Other peaks, links and the year follow these so closely that with all of them errors on new systems grew.
FIGURES: Mapping[str, Callable[[Device], float]] = {
    "flops_16bit": lambda device: device.flops_16bit,
    "flops_8bit": lambda device: device.fastest_8bit,
    "memory_bytes_per_second": lambda device: device.memory_bytes_per_second,
    "memory_bytes": lambda device: device.memory_bytes,
    "power_watts": lambda device: device.power_watts,
}


def fact_columns(questions: Sequence[Question], wanted: Container[str] | None = None) -> dict[str, Any]:
    """Columns of facts and of devices' figures, shape (n_questions,) each: those wanted, or those that differ.

    The device is also there where all have one, so that another one is seen to be new.
    DATE is in years, to the month, and a column where it spans YEARS_MIN: what changes within a month is weather.
    """
    columns = all_fact_columns(questions)
    if wanted is None:
        return {name: values for name, values in columns.items() if _tells(name, values)}
    return {name: values for name, values in columns.items() if name in wanted}


def all_fact_columns(questions: Sequence[Question]) -> dict[str, Any]:
    """Columns of all facts and of devices' figures, shape (n_questions,) each."""
    names = [device_of(question) for question in questions]
    return {
        MODEL: _texts(names),
        f"{FACT}interconnect": _texts([network_named(one.facts.interconnect or "") for one in questions]),
        f"{FACT}framework": _texts([(one.facts.framework or "").lower() for one in questions]),
        f"{FACT}accelerators_per_node": _numbers([one.facts.accelerators_per_node for one in questions]),
        DATE: _numbers([_years(one.started_ns) for one in questions]),
        **_figures(names),
    }


def _figures(names: Sequence[str]) -> dict[str, Floats]:
    distinct = sorted(set(names))
    place_of = {name: place for place, name in enumerate(distinct)}
    places = np.array([place_of[name] for name in names], dtype=np.int64)
    devices = [device_named(name) if name else None for name in distinct]
    return {
        DEVICE + figure: np.array([np.nan if device is None else read(device) for device in devices])[places]
        for figure, read in FIGURES.items()
    }


@lru_cache(maxsize=1024)  # many questions have the same date
def _years(started_ns: int | None) -> float | None:
    if started_ns is None:
        return None
    moment = datetime.fromtimestamp(started_ns * NS, tz=UTC)
    return round(moment.year + (moment.month - 1) / 12, 3)


def _texts(texts: Sequence[str | None]) -> Any:
    return np.array([text or None for text in texts], dtype=object)


def _numbers(numbers: Sequence[float | None]) -> Floats:
    return np.array([np.nan if number is None else float(number) for number in numbers], dtype=np.float64)


def _tells(name: str, values: Any) -> bool:
    if name == DATE:
        return bool(np.nanmax(values, initial=-np.inf) - np.nanmin(values, initial=np.inf) >= YEARS_MIN)
    return _differ(values) or (name == MODEL and any(values))


def _differ(values: Any) -> bool:
    present = {value for value in values.tolist() if value is not None and value == value}  # noqa: PLR0124 - NaN
    return len(present) > 1
