"""The blame for a trial without an objective: its configuration, or the command, which is the same for every trial."""

from collections.abc import Collection, Sequence
from pathlib import Path, PurePath

from crosswind.data.schema.command.launchers import started_by

NOT_EXECUTABLE, NOT_PRESENT, MISUSED = 126, 127, 2  # Source: bash(1), EXIT STATUS
SCRIPTS = frozenset({".py", ".sh", ".bash", ".pl", ".rb", ".R", ".jl", ".js", ".lua"})


def fault_of_command(
    command: Sequence[str], exit_code: int, *, has_steps: bool, ever_measured: bool, infeasible: Collection[int]
) -> str:
    """Return in words what is wrong with the command; empty where the configuration may be to blame.

    A program that recorded steps, or ended with an exit code of what cannot run, is no fault of the command. A command
    line that was misunderstood is one only as long as no trial of the study was `ever_measured`: an option may refuse
    some values.
    """
    if exit_code == 0 or has_steps or exit_code in infeasible:
        return ""
    if exit_code == NOT_PRESENT:
        return "a program that the command starts was not found"
    if exit_code == NOT_EXECUTABLE:
        return "a program that the command starts cannot be executed"
    if script := _missing_script(command):
        return f"{script} is not there"
    if exit_code == MISUSED and not ever_measured:
        return "the program did not understand its command line (--infeasible 2 if the configuration is to blame)"
    return ""


def _missing_script(command: Sequence[str]) -> str:
    """Return the script that the command starts where there is no such file."""
    started = started_by(command)
    is_script = not started.is_code and PurePath(started.program).suffix in SCRIPTS
    return started.program if is_script and not Path(started.program).exists() else ""
