"""`crosswind doctor`: what works here, what does not, and how to get it."""

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from crosswind import __version__
from crosswind.cli.output import colour, say, say_json
from crosswind.ingest.collectors import survey
from crosswind.ingest.collectors.source import Host
from crosswind.settings import Settings

EXTRAS = {"pyarrow": "server", "duckdb": "server", "fastapi": "server", "xgboost": "server", "torch": "torch"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `is_needed` things make the exit code 1 when they fail."""

    what: str
    works: bool
    detail: str
    is_needed: bool = False


def configure(parser: argparse.ArgumentParser) -> None:
    """Nothing to configure."""
    del parser


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Looks at everything; exit code 1 when something that recording needs does not work."""
    findings = [*_folders(settings), *_sources(), *_packages()]
    if arguments.json:
        say_json({"version": __version__, "python": sys.version.split()[0], "findings": findings})
    else:
        say(f"crosswind {__version__}, Python {sys.version.split()[0]}, system {settings.system}")
        for finding in findings:
            mark = colour("ok", "32") if finding.works else colour("--", "33")
            say(f"  {mark}  {finding.what:<24} {finding.detail}")
    return 1 if any(finding.is_needed and not finding.works for finding in findings) else 0


def _folders(settings: Settings) -> Iterator[Finding]:
    for what, folder, variable in (
        ("store", settings.home, "CROSSWIND_HOME"),
        ("spool", settings.spool, "CROSSWIND_SPOOL"),
    ):
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        writable = os.access(nearest, os.W_OK) and nearest.is_dir()
        detail = str(folder) if writable else f"{folder} cannot be written: set {variable} to a folder of yours"
        yield Finding(what, writable, detail, is_needed=True)
    yield Finding("several cores", len(os.sched_getaffinity(0)) > 1, f"{len(os.sched_getaffinity(0))} for this process")


def _sources() -> Iterator[Finding]:
    for status in survey(Host()):
        detail = "sampled by crosswind agent" if status.available else f"{status.reason}; needs {status.advice}"
        yield Finding(f"counters: {status.name}", status.available, detail)


def _packages() -> Iterator[Finding]:
    for module, extra in EXTRAS.items():
        found = importlib.util.find_spec(module) is not None
        yield Finding(f"package: {module}", found, "installed" if found else f"pip install 'crosswind[{extra}]'")
