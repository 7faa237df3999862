"""`crosswind doctor`: what works here, what does not, and how to get it."""

import argparse
import importlib.util
import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosswind import __version__
from crosswind.cli.text.output import colour, printable, say, say_json
from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.ingest.agent.settings import AgentSettings, read_settings
from crosswind.ingest.agent.survey import survey
from crosswind.ingest.collectors.source import Host
from crosswind.ingest.kernel.clock import Clock
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.probe.place import node_name
from crosswind.settings import Settings

WIDTH, MARGIN = 118, 29

EXTRAS = {"pyarrow": "server", "duckdb": "server", "fastapi": "server", "xgboost": "server", "torch": "torch"}


@dataclass(frozen=True)
class Finding:
    """One thing that was checked; `is_needed` things make the exit code 1 when they fail."""

    what: str
    works: bool
    detail: str
    advice: str = ""
    is_needed: bool = False


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="the agent's settings, whose sources are tried too")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Check everything; exit code 1 when something that recording needs does not work."""
    wanted = AgentSettings(settings.spool)
    if arguments.config:
        wanted = read_settings(arguments.config, wanted)
    findings = [*_folders(settings, wanted.spool), *_lake(settings), *_sources(wanted), *_clock(), *_packages()]
    if arguments.json:
        say_json({"version": __version__, "python": sys.version.split()[0], "findings": findings})
    else:
        say(f"crosswind {__version__}, Python {sys.version.split()[0]}, system {settings.system}")
        for finding in findings:
            _print(finding)
    return 1 if any(finding.is_needed and not finding.works for finding in findings) else 0


def _print(finding: Finding) -> None:
    mark = colour("ok", "32") if finding.works else colour("--", "33")
    say(printable(f"  {mark}  {finding.what:<22} {finding.detail}"))
    if finding.advice:
        margin = " " * MARGIN
        say(
            textwrap.fill(f"get it: {finding.advice}", WIDTH, initial_indent=margin, subsequent_indent=margin + " " * 8)
        )


def _folders(settings: Settings, spool: Path) -> Iterator[Finding]:
    for what, folder, variable in (("store", settings.home, "CROSSWIND_HOME"), ("spool", spool, "CROSSWIND_SPOOL")):
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        writable = os.access(nearest, os.W_OK) and nearest.is_dir()
        detail = str(folder) if writable else f"{folder} cannot be written"
        advice = "" if writable else f"set {variable} to a folder of yours"
        yield Finding(what, writable, detail, advice, is_needed=True)
    yield Finding("several cores", len(os.sched_getaffinity(0)) > 1, f"{len(os.sched_getaffinity(0))} for this process")


def _lake(settings: Settings) -> Iterator[Finding]:
    """Write, read and remove an object, where the lake is in an object store."""
    if not settings.lake_address:
        return
    try:
        from crosswind.data.lake.objects.bucket import Bucket  # noqa: PLC0415 - heavy

        bucket = Bucket(LakeAddress.of(settings.lake_address, settings.lake_cache))
        with tempfile.NamedTemporaryFile() as draft:
            bucket.check(Path(draft.name))
    except (ProjectError, ModuleNotFoundError) as error:
        yield Finding("lake", False, str(error), is_needed=True)
    else:
        yield Finding("lake", True, f"{bucket.address} takes, returns and removes objects", is_needed=True)


def _sources(settings: AgentSettings) -> Iterator[Finding]:
    occupancy = Occupancy(node_name(), run_directory=settings.run_directory, job_directory=settings.job_directory)
    occupancy.refresh()
    for status in survey(Host(pids=occupancy.pids, occupancy=occupancy), settings):
        what = f"source {status.name}"
        if status.available:
            detail = f"{status.values} values in {status.seconds * 1e6:.0f} us"
            yield Finding(what, True, detail if status.wanted else f"{detail}; only read when the settings enable it")
        else:
            _, _, reason = (status.reason or "").partition(": ")
            yield Finding(what, False, reason or "not here", advice=status.advice)


def _clock() -> Iterator[Finding]:
    state = Clock().state()
    if state is None:
        yield Finding("clock", False, "the kernel does not report its error")
    elif state.is_synchronized:
        yield Finding("clock", True, f"synchronised; off by {state.max_error_seconds * 1e3:.1f} ms at most")
    else:
        advice = "run chronyd or ntpd on every node, so that their samples can be compared"
        yield Finding("clock", False, "not synchronised", advice=advice)


def _packages() -> Iterator[Finding]:
    for module, extra in EXTRAS.items():
        is_installed = importlib.util.find_spec(module) is not None
        advice = "" if is_installed else f"pip install 'crosswind[{extra}]'"
        yield Finding(f"package {module}", is_installed, "installed" if is_installed else "missing", advice)
