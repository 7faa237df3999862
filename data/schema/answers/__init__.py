"""Answers, one dataclass each: models return them, the API sends them, the client gives them back, all show them."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.data.schema.answers import (
        advice,
        checks,
        cohorts,
        effects,
        energy,
        explanations,
        fields,
        jobs,
        nodes,
        predictions,
        runs,
        series,
        sql,
        stragglers,
        studies,
        systems,
        trace_difference,
        traces,
        weather,
    )

__all__ = [
    "advice",
    "checks",
    "cohorts",
    "effects",
    "energy",
    "explanations",
    "fields",
    "jobs",
    "nodes",
    "predictions",
    "runs",
    "series",
    "sql",
    "stragglers",
    "studies",
    "systems",
    "trace_difference",
    "traces",
    "weather",
]


def __getattr__(name: str) -> ModuleType:
    """Import a module of answers when it is first named: all of them take 50 ms, and a verb needs one or two."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
