"""`crosswind deploy WHAT`: the files that install the agent on the nodes of a cluster, and a dashboard in Grafana."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import crosswind
from crosswind.cli.text.output import say, say_json
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.settings import Settings

EXECUTABLE, READABLE = 0o755, 0o644


@dataclass(frozen=True)
class File:
    """A file of the package, and where an administrator puts it."""

    source: str  # below the package's folder `deploy`
    place: str
    mode: int = READABLE

    @property
    def name(self) -> str:
        """The file's name."""
        return Path(self.source).name

    def content(self) -> str:
        """Return the text. Raises: UnavailableError."""
        path = Path(crosswind.__file__).parent / "deploy" / self.source
        try:
            return path.read_text()
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}: install crosswind again") from error


FILES: Mapping[str, tuple[File, ...]] = {
    "agent": (File("agent.toml", "/etc/crosswind/agent.toml"),),
    "grafana": (
        File("grafana/datasource.yaml", "/etc/grafana/provisioning/datasources/crosswind.yaml"),
        File("grafana/dashboards.yaml", "/etc/grafana/provisioning/dashboards/crosswind.yaml"),
        File("grafana/dashboard.json", "/var/lib/grafana/dashboards/crosswind/dashboard.json"),
    ),
    "slurm": (
        File("slurm/prolog.sh", "/etc/slurm/crosswind-prolog.sh", EXECUTABLE),
        File("slurm/epilog.sh", "/etc/slurm/crosswind-epilog.sh", EXECUTABLE),
    ),
    "systemd": (File("systemd/crosswind-agent.service", "/etc/systemd/system/crosswind-agent.service"),),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "what",
        choices=sorted(FILES),
        help="agent: its settings; slurm: prolog and epilog; systemd: the agent's unit; grafana: a dashboard",
    )
    parser.add_argument("--print", action="store_true", help="print the files (default: say where they go)")
    parser.add_argument("--into", type=Path, metavar="DIR", help="write them into this folder")
    parser.epilog = "What each of them is for, and what the agent needs: docs/agent-install.md; docs/grafana.md."


def execute(arguments: argparse.Namespace, settings: Settings) -> int:  # noqa: ARG001 - as every verb
    """Print or write the files, or say where they go."""
    files = FILES[arguments.what]
    if arguments.into:
        _write(files, arguments.into)
    if arguments.json:
        say_json([{"name": file.name, "place": file.place, "content": file.content()} for file in files])
    elif arguments.print:
        for file in files:
            say(file.content().rstrip("\n") if len(files) == 1 else f"# {file.name}\n{file.content()}")
    else:
        folder = arguments.into or Path("DIR")
        if not arguments.into:
            say(f"crosswind deploy {arguments.what} --print prints, and --into DIR writes:")
        for file in files:
            say(f"  install -D -m {file.mode:04o} {folder / file.name} {file.place}")
    return 0


def _write(files: tuple[File, ...], folder: Path) -> None:
    """Write the files, and replace none. Raises: ConflictError, UnavailableError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            with (folder / file.name).open("x") as written:
                written.write(file.content())
            (folder / file.name).chmod(file.mode)
    except FileExistsError as error:
        raise ConflictError(f"{error.filename}: is there already: expected a folder without it") from error
    except OSError as error:
        raise UnavailableError(f"{error.filename or folder}: {error.strerror}") from error
