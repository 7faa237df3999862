"""Recording unchanged programs under `crosswind run`: their Python ranks find a hook on their path."""

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "on_path"  # holds the hook alone: users can import everything in it


def injected(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to add to the program's environment; none if CROSSWIND_INJECT=0."""
    if environment.get("CROSSWIND_INJECT") == "0":
        return {}
    others = environment.get("PYTHONPATH")
    return {"PYTHONPATH": f"{FOLDER}{os.pathsep}{others}" if others else str(FOLDER)}
