"""Modules that stand beside a job must not load anything that is not there, or that takes long."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINT_MODULES = "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
ALLOWED = set(sys.stdlib_module_names) | {"crosswind", "__editable___crosswind_0_1_0_finder"}


def loaded_by(code: str, tmp_path: Path) -> set[str]:
    """Top-level modules that a program of this code has loaded, less those that an empty one has."""
    environment = os.environ | {"CROSSWIND_SPOOL": str(tmp_path), "CROSSWIND_HOME": str(tmp_path)}

    def modules(program: str) -> set[str]:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines()[-1].split())

    return modules(f"import sys\n{code}\n{PRINT_MODULES}") - modules(f"import sys\n{PRINT_MODULES}")


PROBE = "import crosswind\nwith crosswind.run() as run:\n    list(run.steps('ab'))"
HELP = """
from crosswind.cli.main import main
try:
    main(['--help'])
except SystemExit:
    pass
"""
BESIDE_A_JOB = {
    "import": "import crosswind",
    "probe": PROBE,
    "help": HELP,
    "run": "from crosswind.cli.main import main\nmain(['run', '--no-ingest', '--interval', '0.05', '--', 'true'])",
    "agent": "import crosswind.ingest.agent.agent, crosswind.ingest.agent.sweep",
    "lab": "import crosswind.ingest.lab.faults",
}


@pytest.mark.parametrize("code", BESIDE_A_JOB.values(), ids=BESIDE_A_JOB.keys())
def test_what_runs_beside_a_job_loads_the_standard_library_alone(code: str, tmp_path: Path) -> None:
    assert loaded_by(code, tmp_path) - ALLOWED == set()


def test_the_check_would_see_a_third_party_module(tmp_path: Path) -> None:
    assert "numpy" in loaded_by("import numpy", tmp_path) - ALLOWED


def test_help_loads_no_verb(tmp_path: Path) -> None:
    code = f"{HELP}\nprint(*(name for name in sys.modules if name.startswith('crosswind.')), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert {name for name in loaded if name.startswith("crosswind.cli.")} == {"crosswind.cli.main"}
    assert not any(name.startswith(("crosswind.models", "crosswind.api", "crosswind.dashboards")) for name in loaded)
