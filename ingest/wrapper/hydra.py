"""The file that a program of Hydra begins with, where the command line names it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from crosswind.data.schema.command.arguments import Argument

IN_FULL = {"cn": "config_name", "cp": "config_path", "cd": "config_dir"}
NAME, PATH, FOLDER = IN_FULL.values()
WRITTEN_PATH = re.compile(r"config_path\s*=\s*r?[\"']([^\"'\n]*)[\"']")
SUFFIX = ".yaml"
MAX_LETTERS = 1 << 20  # of a script that are searched


def with_hydra_file(arguments: Sequence[Argument], program: str) -> Sequence[Argument]:
    """Return the arguments with the path of the file that `--config-name` names; as they are where there is none.

    Source: Hydra 1.3, "Hydra's command line flags": a path is relative to the script, a folder to the current one.
    """
    full = [replace(argument, name=IN_FULL.get(argument.name, argument.name)) for argument in arguments]
    texts = {argument.name: argument.text for argument in full if argument.text}
    file = _file(texts, program) if NAME in texts else None
    if file is None:
        return arguments
    return [replace(argument, text=str(file)) if argument.name == NAME else argument for argument in full]


def _file(texts: dict[str, str], program: str) -> Path | None:
    name = texts[NAME].removesuffix(SUFFIX) + SUFFIX
    with suppress(OSError, ValueError):  # of a name that is too long for a file's
        folders = _folders(texts, _script(program))
        return next((folder / name for folder in folders if (folder / name).is_file()), None)
    return None


def _folders(texts: dict[str, str], script: Path) -> Iterator[Path]:
    yield script.parent / (texts[PATH] if PATH in texts else _written_path(script))
    if FOLDER in texts:
        yield Path(texts[FOLDER])


def _written_path(script: Path) -> str:
    """Return the `config_path` of the script's `hydra.main`; its own folder where it has none."""
    if not script.is_file():
        return ""
    with script.open(errors="replace") as lines:
        written = WRITTEN_PATH.search(lines.read(MAX_LETTERS))
    return written[1] if written else ""


def _script(program: str) -> Path:
    """Return the script's path, also of a module `package.train` below the current folder."""
    path = Path(program)
    return path if path.is_file() else Path(*program.split(".")).with_suffix(".py")
