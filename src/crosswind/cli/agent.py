"""`crosswind agent`: samples this node until it is told to stop."""

import argparse
import logging
from pathlib import Path

from crosswind.cli.output import say_json
from crosswind.ingest.agent import AgentSettings, run_agent, stop_on_signals, sweep_once
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--spool", type=Path, help="folder to write to (default: this installation's spool)")
    parser.add_argument("--run-dir", type=Path, help="where ranks announce themselves (default: the spool)")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between sweeps (default 1)")
    parser.add_argument("--once", action="store_true", help="take one sweep and end")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Samples until SIGTERM or SIGINT; then takes a last sweep and seals it."""
    logging.basicConfig(level=logging.INFO, format="crosswind agent: %(message)s")
    spool = arguments.spool or settings.spool
    wanted = AgentSettings(spool, arguments.interval, run_directory=arguments.run_dir or spool)
    if arguments.once:
        sweep_once(wanted)
    else:
        run_agent(wanted, stop_on_signals())
    if arguments.json:
        say_json({"spool": str(spool)})
    return 0
