"""`crosswind demo`: the whole loop on this machine, with disturbances whose truth is known."""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from crosswind.api.settings import ServerSettings
from crosswind.cli.demo.loop import DemoLoop
from crosswind.cli.demo.plan import TRIALS
from crosswind.cli.demo.summary import summary
from crosswind.cli.output import say, say_json
from crosswind.cli.serve import serve
from crosswind.data.errors import InvalidInputError
from crosswind.data.store import Store
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--home", type=Path, help="the demo's own store (default: `demo` below this store's folder)")
    parser.add_argument("--seed", type=int, help="order and ranks of the disturbances (default: from the clock)")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"of tuning (default {TRIALS}, 0 leaves it out)")
    parser.add_argument(
        "--port", type=int, default=8321, help="to serve the pages on (default 8321; 0 takes a free one)"
    )
    parser.add_argument("--no-serve", action="store_true", help="end after the summary")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measures, tells, serves."""
    if not 0 <= arguments.trials <= 100:
        raise InvalidInputError(f"--trials {arguments.trials}: expected 0 to 100")
    home = (arguments.home or settings.home / "demo").absolute()
    own = replace(settings, home=home, spool=home / "spool", database=None)
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    with Store.open(home) as store:
        result = DemoLoop(own, store, seed=seed, trials=arguments.trials).run()
    if arguments.json:
        say_json(result)
    else:
        say(f"\n{summary(result)}\n")
        say(f"It took {result.seconds:.0f} s (seed {seed}); the store is {home}.")
    if arguments.no_serve:
        return 0
    return serve(own, ServerSettings(port=arguments.port, token=settings.token), as_json=arguments.json)
