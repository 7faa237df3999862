"""`crosswind runs`: the stored runs, newest first, or what of their variability is luck in converging."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.text.first_steps import no_runs_words
from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.text.run_table import COLUMNS, columns_of, run_table
from crosswind.client.connection import connect
from crosswind.client.protocol import LISTED, Client
from crosswind.client.run_names import run_named
from crosswind.dashboards.wording import NONE, seconds
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import RunState
from crosswind.settings import Settings

if TYPE_CHECKING:  # heavy
    from crosswind.data.store.progress_rate import ProgressRate

EVERY_RUN = 100_000
ACTS = EXPORT, _ = ("export", "delete")
RATE_HEADINGS = (
    *("workload", "system", "ranks", "runs", "time to train", "CoV", "progress", "CoV: luck"),
    *("time per unit", "CoV: system"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "act",
        nargs="?",
        choices=ACTS,
        help="take runs along as ZIP files, or delete them with their rows",
    )
    parser.add_argument("run", nargs="*", help="ids of these runs, or the ends of their ids")
    parser.add_argument("--to", type=Path, default=Path(), metavar="FOLDER", help="of exported files (default: here)")
    parser.add_argument("--workload", help="only runs of this workload")
    parser.add_argument("--system", help="only runs on this system")
    parser.add_argument("--state", choices=[str(state) for state in RunState], help="only runs in this state")
    parser.add_argument("--limit", type=int, default=LISTED, help=f"at most this many (default {LISTED})")
    parser.add_argument(
        "--columns", metavar="A,B", help=f"of {','.join(COLUMNS)}, config.NAME, tag.NAME, software.NAME"
    )
    parser.add_argument("--rates", action="store_true", help="per cohort: time to train = progress x time per unit")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Lists them, or does it with some."""
    if arguments.act:
        return _act(arguments, settings)
    if arguments.limit < 1:
        raise InvalidInputError(f"--limit {arguments.limit}: expected 1 or more")
    columns = columns_of(arguments.columns) if arguments.columns is not None else None
    state = RunState(arguments.state) if arguments.state else None
    with connect(arguments.server, settings=settings) as client, Progress("reading runs"):
        if arguments.rates:
            rates = _rates(client, arguments, state)
        else:
            runs = client.run_outcomes(arguments.workload, arguments.system, state=state, limit=arguments.limit)
    if arguments.rates:
        _print_rates(rates, as_json=arguments.json)
    elif arguments.json:
        say_json(runs)
    else:
        say(run_table(runs, columns) if runs else no_runs_words(settings))
    return 0


def _act(arguments: argparse.Namespace, settings: Settings) -> int:
    """Export or delete runs. Raises: NotFoundError; ForbiddenError for another's."""
    if not arguments.run:
        raise InvalidInputError(f"runs {arguments.act}: expected the id of a run, or several")
    done = []
    with connect(arguments.server, settings=settings) as client:
        run_ids = [run_named(client, name).run_id for name in arguments.run]
        for run_id in run_ids:
            done.append(
                _exported(client, run_id, arguments.to) if arguments.act == EXPORT else _deleted(client, run_id)
            )
            if not arguments.json:
                say(done[-1]["done"])
    if arguments.json:
        say_json(done)
    return 0


def _exported(client: Client, run_id: str, folder: Path) -> dict[str, str]:
    path = folder / f"{run_id}.zip"
    client.own.export_run(run_id, path)
    return {"run": run_id, "done": f"run {run_id} is in {path}"}


def _deleted(client: Client, run_id: str) -> dict[str, str]:
    rows = client.own.delete_run(run_id)
    return {"run": run_id, "done": f"run {run_id} is deleted with {rows} rows"}


def _rates(client: Client, arguments: argparse.Namespace, state: RunState | None) -> "Sequence[ProgressRate]":
    from crosswind.data.store.progress_rate import progress_rates  # noqa: PLC0415 - heavy

    runs = client.runs(arguments.workload, arguments.system, state=state, limit=EVERY_RUN)
    return progress_rates(runs[::-1])[: arguments.limit]


def _print_rates(rates: "Sequence[ProgressRate]", *, as_json: bool) -> None:
    if as_json:
        say_json([asdict(rate) for rate in rates])
    elif rates:
        say(table(RATE_HEADINGS, [_rate_line(rate) for rate in rates]))
    else:
        say("No cohort has two runs with recorded progress: crosswind ingest of MLPerf logs brings such runs.")


def _rate_line(rate: "ProgressRate") -> tuple[str, ...]:
    return (
        rate.workload,
        rate.system,
        str(rate.world_size or NONE),
        str(rate.runs),
        seconds(rate.seconds_p50),
        f"{rate.seconds_cov_ratio:.1%}",
        f"{rate.progress_p50:g} {rate.unit}",
        f"{rate.progress_cov_ratio:.1%}",
        seconds(rate.seconds_per_progress_p50),
        f"{rate.seconds_per_progress_cov_ratio:.1%}",
    )
