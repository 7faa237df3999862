"""The tutorial, typed in its order by a newcomer; run it to write down anew what its commands print."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.examples import PROMPT, ROOT, Example, Shell, examples_in, write_files

TUTORIAL = ROOT / "docs" / "tutorial.md"
RECORDED = ROOT / "tests" / "ingest" / "recorded"
GIVEN = {  # what a newcomer has
    "sacct.txt": RECORDED / "sacct" / "with-limits.txt",
    "logs/llama2.txt": RECORDED / "megatron" / "llama2.txt",
}
NOT_TYPED = ("pip install", "eval ")  # it is installed, and nobody presses Tab
VARIABLES = {"CROSSWIND_SYSTEM": "workstation", "CROSSWIND_NODE": "workstation"}


def newcomer(folder: Path) -> Shell:
    """Return the shell of a newcomer who has a program, accounting and logs in this folder."""
    write_files(TUTORIAL, folder)
    for name, source in GIVEN.items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(source, folder / name)
    return Shell(folder, VARIABLES)


def typed(shell: Shell) -> Iterator[tuple[Example, str]]:
    """Yield every example that is typed, with what it printed."""
    for example in examples_in(TUTORIAL):
        if not example.command.startswith(NOT_TYPED):
            yield example, shell.ask(example).replace(str(shell.folder), "/home/ada")


def write_down() -> None:
    """Replace the outputs that do not match by those of now; `...` in them has to be put back by hand."""
    lines = TUTORIAL.read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        asked = list(typed(newcomer(Path(folder))))
    for example, printed in reversed(asked):
        if not example.matches(printed):
            last = example.number + len(example.output.splitlines())
            lines[example.number : last] = [line.rstrip() for line in printed.rstrip("\n").splitlines()]
            sys.stdout.write(f"{PROMPT}{example.command}\n{printed}")
    TUTORIAL.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_down()
