"""Examples of the docs: commands with what they print, and files, in fenced blocks of Markdown.

In a block, a line that begins with `$ ` is a command and what follows is its output, up to the next command. `...` in
an output stands for any lines. A block whose first line is `# NAME.py` or `# NAME.yaml` is a file of that name.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMPT, ELISION, INTERRUPT = "$ ", "...", "^C"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w/.-]+\.(?:py|yaml|toml|sh))\n")
OURS = re.compile(r"(?:srun )?crosswind (?!agent: |[0-9])")
COMMENT = re.compile(r"\s{2,}#.*$")
TIME = r"N (?:ns|us|\u00b5s|ms|s|min N s|min|h N min|h)\b"
PARTS_OF_A_LINE = (  # what differs between machines and days, and what stands for it
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r"\b(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[0-9A-HJKMNP-TV-Z]{6}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?"), "MOMENT"),
    (re.compile(r"[\u2588\u2591]+"), "BAR"),
    (re.compile(r"\d[\d,.\u202f]*(?<![.,])(?:e[+-]?\d+)?"), "N"),
    (re.compile(TIME), "TIME"),
    (re.compile(r"[+\u2212-](?=N|TIME)"), ""),
    (re.compile(r"\s+"), " "),
)
PATIENCE_SECONDS = 300
AGENT_SECONDS = 3.0  # after which somebody types ^C


@dataclass(frozen=True)
class Example:
    """One command and what the docs say that it prints; `number` is its line in the document."""

    command: str
    output: str
    number: int

    @property
    def is_interrupted(self) -> bool:
        """Return whether somebody ends it by Ctrl-C."""
        return INTERRUPT in self.output.splitlines()

    def matches(self, printed: str) -> bool:
        """Return whether this was printed, but for numbers, times and names of runs."""
        return re.fullmatch(self.pattern(), shape(printed)) is not None

    def pattern(self) -> str:
        """Return a regular expression over shapes of lines."""
        lines = [line for line in self.output.splitlines() if line.strip() not in ("", INTERRUPT)]
        return "".join(
            r"(?:.*\n)*?" if line.strip() == ELISION else re.escape(f"{shape(line).strip()}\n") for line in lines
        )


def shape(text: str) -> str:
    """Return the lines that say something, without what differs between machines and days."""
    lines = []
    for line in text.splitlines():
        for pattern, replacement in PARTS_OF_A_LINE:
            line = pattern.sub(replacement, line)  # noqa: PLW2901
        if line.strip():
            lines.append(line.strip())
    return "".join(f"{line}\n" for line in lines)


def examples_in(document: Path) -> Iterator[Example]:
    """Yield the commands of a document in order, with their output."""
    text = document.read_text()
    for block in BLOCK.finditer(text):
        number = text[: block.start(2)].count("\n")
        command, first, output = "", 0, list[str]()
        for line in [*block[2].splitlines(), PROMPT]:
            number += 1
            if not line.startswith(PROMPT):
                output.append(line)
                continue
            if command:
                yield Example(command, "\n".join(output), first)
            command, first, output = COMMENT.sub("", line.removeprefix(PROMPT)).strip(), number, []


def write_files(document: Path, folder: Path) -> None:
    """Write the files that a document shows."""
    for block in BLOCK.finditer(document.read_text()):
        if named := FILE.match(block[2]):
            place = folder / named[1]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block[2][named.end() :])


def commands_in(document: Path) -> Iterator[tuple[int, str]]:
    """Yield every command line of crosswind in a document's blocks, with its line number and without its comment."""
    text = document.read_text()
    for block in BLOCK.finditer(text):
        first = text[: block.start(2)].count("\n") + 1
        for number, line in enumerate(block[2].splitlines(), first):
            command = COMMENT.sub("", line.removeprefix(PROMPT)).strip().removesuffix("\\")
            if OURS.match(command):
                yield number, command.removeprefix("srun ")


@dataclass(frozen=True)
class Shell:
    """A shell of a newcomer: an own home, the commands of this environment, nothing set."""

    folder: Path
    variables: dict[str, str]

    def ask(self, example: Example) -> str:
        """Return what the command prints, output and complaints in one."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSWIND_", "SLURM_"))}
        path = f"{Path(sys.executable).parent}:{kept['PATH']}"
        environment = kept | {"HOME": str(self.folder), "PATH": path, "OMP_NUM_THREADS": "1"} | self.variables
        environment.pop("XDG_DATA_HOME", None)
        with subprocess.Popen(
            ["bash", "-c", f"exec {example.command}" if example.is_interrupted else example.command],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            if example.is_interrupted:
                try:
                    process.wait(AGENT_SECONDS)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGINT)
            return process.communicate(timeout=PATIENCE_SECONDS)[0]
