"""`crosswind agent`: samples this node until it is stopped."""

import argparse
import logging
import resource
from dataclasses import replace
from pathlib import Path

from crosswind.cli.text.output import say_json
from crosswind.ingest.agent.agent import Reload, reload_on_hangup, run_agent, stop_on_signals, sweep_once
from crosswind.ingest.agent.settings import AgentSettings, read_settings
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--spool", type=Path, help="folder to write to (default: this installation's spool)")
    parser.add_argument("--run-dir", type=Path, help="where ranks announce themselves (default: the spool)")
    parser.add_argument("--interval", type=float, metavar="SECONDS", help="between sweeps (default 1)")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="TOML settings; SIGHUP makes the agent read them again"
    )
    parser.add_argument("--once", action="store_true", help="take one sweep and end")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Samples until SIGTERM or SIGINT; then takes a last sweep and seals it."""
    logging.basicConfig(level=logging.INFO, format="crosswind agent: %(message)s")
    _open_many_files()
    stop, hangup = stop_on_signals(), reload_on_hangup()  # before anything that takes time
    wanted = _wanted(arguments, settings)
    if arguments.once:
        sweep_once(wanted)
    else:
        run_agent(wanted, stop, Reload(hangup, lambda: _wanted(arguments, settings)))
    if arguments.json:
        say_json({"spool": str(wanted.spool)})
    return 0


def _open_many_files() -> None:
    """Allow as many descriptors as the hard limit allows: large nodes have thousands of counter files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _wanted(arguments: argparse.Namespace, settings: Settings) -> AgentSettings:
    """Return the settings: defaults, overridden by the file, then by the command line."""
    wanted = AgentSettings(settings.spool)
    if arguments.config:
        wanted = read_settings(arguments.config, wanted)
    if arguments.spool:
        wanted = replace(wanted, spool=arguments.spool)
    if arguments.interval is not None:
        wanted = replace(wanted, interval_seconds=arguments.interval)
    return replace(wanted, run_directory=arguments.run_dir or wanted.run_directory or wanted.spool)
