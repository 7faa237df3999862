"""The recording of a program under `crosswind run` without a change: its Python ranks find a hook on their path."""

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "on_path"  # holds nothing but the hook: whatever lies there can be imported by users


def injected(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what to add to the program's environment; nothing where CROSSWIND_INJECT=0 says so."""
    if environment.get("CROSSWIND_INJECT") == "0":
        return {}
    others = environment.get("PYTHONPATH")
    return {"PYTHONPATH": f"{FOLDER}{os.pathsep}{others}" if others else str(FOLDER)}
