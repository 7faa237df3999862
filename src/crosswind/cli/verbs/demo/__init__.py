"""`crosswind demo`: the whole loop on this machine, with known disturbances."""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from crosswind.cli.text.output import say, say_json
from crosswind.cli.verbs.demo.plan import RUNS, RUNS_LEAST, TRIALS, planned_runs
from crosswind.cli.verbs.demo.site import site
from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.lab.laboratory import SYSTEM
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--home", type=Path, help="the demo's own store (default: `demo` below this store's folder)")
    parser.add_argument("--seed", type=int, help="order and ranks of the faults (default: from the clock)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"to measure, half with a fault (default {RUNS})")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"of tuning (default {TRIALS}, 0 leaves it out)")
    parser.add_argument(
        "--port", type=int, default=8321, help="to serve the pages on (default 8321; 0 takes a free one)"
    )
    parser.add_argument("--no-serve", action="store_true", help="serve no pages, and end after the summary")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serves the pages, measures, sums up, and goes on serving."""
    began = time.monotonic()
    if not 0 <= arguments.trials <= 100:
        raise InvalidInputError(f"--trials {arguments.trials}: expected 0 to 100")
    if not RUNS_LEAST <= arguments.runs <= RUNS:
        raise InvalidInputError(f"--runs {arguments.runs}: expected {RUNS_LEAST} to {RUNS}")
    home = (arguments.home or settings.home / "demo").absolute()
    own = replace(settings, home=home, spool=home / "spool", database=None)
    if arguments.no_serve:
        _measure(arguments, own, began)
        return 0
    with site(own, arguments.port) as pages:
        from crosswind.cli.verbs.demo import loop  # noqa: F401, PLC0415 - takes as long as the server, on the other core

        url = pages.url()
        if arguments.json:
            say_json({"url": url})
        else:
            say(f"Pages and API: {url}  (Ctrl-C ends it; runs appear as they are measured)")
        _measure(arguments, own, began)
        if not arguments.json:
            say(f"Of the fault lab's runs: {url}counters?system={SYSTEM} and {url}interference?system={SYSTEM}")
        return pages.wait()


def _measure(arguments: argparse.Namespace, own: Settings, began: float) -> None:
    from crosswind.cli.verbs.demo.loop import DemoLoop  # noqa: PLC0415 - heavy
    from crosswind.cli.verbs.demo.summary import next_commands, summary  # noqa: PLC0415
    from crosswind.data.store.store import Store  # noqa: PLC0415

    seed = int(time.time()) if arguments.seed is None else arguments.seed
    with Store.open(own.home) as store:
        result = DemoLoop(own, store, planned_runs(seed, arguments.runs), seed=seed, trials=arguments.trials).run(began)
    if arguments.json:
        say_json(result)
    else:
        say(f"\n{summary(result)}\n")
        say(f"It took {result.seconds:.0f} s (seed {seed}); the store is {own.home}. To go on with these runs:")
        say("\n".join(f"  {command}" for command in next_commands(own.home, result)))
