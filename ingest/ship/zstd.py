"""Zstandard, where this Python has it: in the standard library since 3.14, before that as a backport."""

from importlib import import_module
from types import ModuleType


def zstd_module() -> ModuleType | None:
    """The module `compression.zstd` or its backport; None where neither is installed."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    return None
