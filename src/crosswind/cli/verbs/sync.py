"""`crosswind sync`: nodes' spools into the store or to a server, or data of Slurm or Prometheus; once or often."""

import argparse
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from crosswind.cli.text.output import printable, say, say_json
from crosswind.cli.verbs import sync_prometheus, sync_slurm
from crosswind.data.schema.errors import InvalidInputError, ProjectError, UnavailableError
from crosswind.ingest.agent.agent import stop_on_signals
from crosswind.ingest.ship.address import way_to
from crosswind.ingest.ship.shipper import Shipper
from crosswind.ingest.ship.token import ship_token
from crosswind.ingest.spool.collected import collecting
from crosswind.settings import Settings

NOT_SPOOLS = ("lake", "rejected")  # folders of a store, in which a server works
TRY_LATER = 75


@dataclass
class Round:
    """Counts and problems of one look at all spools."""

    spools: int = 0
    batches: int = 0
    duplicates: int = 0
    rows: int | None = None  # unknown when segments are sent on unopened
    waiting: int = 0
    failed: int = 0  # spools that could not be read
    problems: list[str] = field(default_factory=list)


Take = Callable[[Path, Round], None]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="folders with spools anywhere below; or `slurm`, or `prometheus URL` (a folder of that name: ./slurm)",
    )
    parser.add_argument("--to", metavar="URL", help="a server (http://, https://, unix:///PATH) instead of the store")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="look again and again, until SIGTERM or Ctrl-C")
    sync_slurm.configure(parser)
    sync_prometheus.configure(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Take sealed segments; exit code 75 when some have to wait or a spool could not be read."""
    if arguments.every is not None and not 0.1 <= arguments.every <= 86_400:
        raise InvalidInputError(f"--every {arguments.every}: expected 0.1 to 86400 seconds")
    if sync_prometheus.is_meant(arguments.paths):
        return sync_prometheus.execute(arguments, settings)
    sync_prometheus.refuse_elsewhere(arguments)
    if sync_slurm.is_meant(arguments.paths):
        return sync_slurm.execute(arguments, settings)
    if arguments.since is not None:
        raise InvalidInputError("--since is for `crosswind sync slurm` and `crosswind sync prometheus URL`")
    paths = [Path(path) for path in arguments.paths] or [settings.spool]
    take = _shipping(arguments.to) if arguments.to else storing(settings)
    if arguments.every is None:
        done = take_all(paths, take, settings.home)
        _print(done, as_json=arguments.json)
        return TRY_LATER if done.waiting or done.failed else 0
    collected: set[Path] = set()

    def look(held: ExitStack) -> Round:
        collect_from(paths, held, collected)
        return take_all(paths, take, settings.home)

    _repeat(look, arguments.every, as_json=arguments.json)
    return 0


def collect_from(paths: Iterable[Path], held: ExitStack, collected: set[Path]) -> None:
    """Say in each spool below the paths that it is collected, as long as `held` is open: jobs then leave it to us."""
    spools = {spool for path in paths for spool in (path, *spools_below(path, path, []))}
    for spool in sorted(spools - collected):
        held.enter_context(collecting(spool))
    collected |= spools


def take_all(paths: Iterable[Path], take: Take, home: Path) -> Round:
    """Takes every spool below the paths. Raises: UnavailableError when a path is no folder."""
    done = Round()
    for path in paths:
        if not path.is_dir():
            raise UnavailableError(f"{path}: no such folder")
        for spool in spools_below(path, home, done.problems):
            done.spools += 1
            try:
                take(spool, done)
            except (ProjectError, OSError) as error:
                done.failed += 1
                done.problems.append(str(error))
            done.waiting += sum(1 for _ in spool.glob("*.segment"))
    return done


def spools_below(path: Path, home: Path, problems: list[str]) -> Iterator[Path]:
    """Yield every folder with segments, following no links and leaving out a store's own folders."""
    own = {home / name for name in NOT_SPOOLS}
    for folder, folders, files in os.walk(path, onerror=lambda error: problems.append(str(error))):
        folders[:] = sorted(name for name in folders if Path(folder, name) not in own)
        if any(name.endswith((".segment", ".open")) for name in files):
            yield Path(folder)


def storing(settings: Settings) -> Take:
    """Return what stores a spool."""
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - sending spools needs no store
    from crosswind.ingest.load.load import load_spool  # noqa: PLC0415

    def take(spool: Path, done: Round) -> None:
        with open_store(settings) as store:
            loaded = load_spool(store, spool)
        done.batches += loaded.batches
        done.duplicates += loaded.duplicates
        done.rows = (done.rows or 0) + loaded.rows
        done.problems += loaded.problems

    return take


def _shipping(url: str) -> Take:
    way_to(url)  # refuses a bad address, even if nothing is to be sent yet
    token = ship_token()
    shippers: dict[Path, Shipper] = {}
    due: dict[Path, float] = {}

    def take(spool: Path, done: Round) -> None:
        if due.get(spool, 0.0) > time.monotonic():
            return
        shipper = shippers.setdefault(spool, Shipper(spool, url, token))
        before = shipper.shipped
        due[spool] = time.monotonic() + shipper.ship_all()
        done.batches += shipper.shipped.segments - before.segments
        if shipper.shipped.problem is not None:
            raise UnavailableError(shipper.shipped.problem)

    return take


def _repeat(look: Callable[[ExitStack], Round], seconds: float, *, as_json: bool) -> None:
    stop, last_problems = stop_on_signals(), None
    with ExitStack() as held:
        while not stop.is_set():
            try:
                done = look(held)
            except ProjectError as error:  # a folder or a database that is away for a while
                done = Round(problems=[str(error)])
            if done.batches or done.problems != last_problems:
                _print(done, as_json=as_json)
            last_problems = done.problems
            stop.wait(seconds)


def _print(done: Round, *, as_json: bool) -> None:
    if as_json:
        say_json(asdict(done))
        return
    rows = "" if done.rows is None else f"{done.rows} rows, "
    there = f"{done.duplicates} were there before"
    say(f"{done.spools} spools: {done.batches} batches taken ({there}), {rows}{done.waiting} wait")
    for problem in done.problems:
        say(printable(f"problem: {problem}"))
