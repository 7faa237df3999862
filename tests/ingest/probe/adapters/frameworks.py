"""Training programs in the environment of `make frameworks`, which CROSSWIND_FRAMEWORKS may name."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.ingest.probe.adapters.launched import by_hand
from tests.ingest.probe.adapters.trained import Trained, came_of

ROOT = Path(__file__).parents[4]
PYTHON = Path(os.environ.get("CROSSWIND_FRAMEWORKS", ROOT / ".venv-frameworks")) / "bin" / "python"


def require(package: str) -> None:
    """Skips where this Python package is not in the environment."""
    finds = [str(PYTHON), "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec({package!r}))"]
    if not PYTHON.exists() or subprocess.run(finds, check=False).returncode:
        pytest.skip(f"needs make frameworks: no {package} for {PYTHON}")


def recorded(folder: Path, *command: str, processes: int = 2) -> Trained:
    """Return the record of a program whose ranks are started by hand, or that starts them itself."""
    return came_of(folder, by_hand(folder, command, ranks=processes, python=PYTHON))
