"""`crosswind jobs`: the scheduler's jobs, newest first."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import say, say_json, table
from crosswind.client.connection import connect
from crosswind.client.protocol import LISTED
from crosswind.dashboards.energy_wording import joules_words
from crosswind.dashboards.wording import NONE, percent, seconds, utc
from crosswind.data.schema.answers.jobs import ListedJob
from crosswind.settings import Settings

HEADINGS = ("job", "name", "user", "state", "nodes", "started", "limit", "used", "of it", "energy")
NAME_WIDTH = 32


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--name", help="only jobs that their users called so")
    parser.add_argument("--system", help="only jobs on this system")
    parser.add_argument("--user", help="only jobs of this user")
    parser.add_argument("--state", metavar="WORD", help="only jobs in this state: the scheduler's word, as TIMEOUT")
    parser.add_argument("--limit", type=whole, default=LISTED, help=f"at most this many (default {LISTED})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """List them."""
    facts = {"user": arguments.user, "state": arguments.state, "limit": arguments.limit}
    with connect(arguments.server, settings=settings) as client, Progress("reading jobs"):
        jobs = client.jobs(arguments.name, arguments.system, **facts)
    if arguments.json:
        say_json(jobs)
    elif jobs:
        say(table(HEADINGS, [_line(job) for job in jobs]))
    else:
        say("No such jobs are stored: crosswind ingest of accounting, or crosswind sync slurm, brings them.")
    return 0


def _line(job: ListedJob) -> tuple[str, ...]:
    used, limit = job.elapsed_seconds, job.limit_seconds
    return (
        job.job_id,
        job.name if len(job.name) <= NAME_WIDTH else f"{job.name[: NAME_WIDTH - 1]}…",
        job.user or NONE,
        job.state or NONE,
        str(job.node_count or len(job.nodes) or NONE),
        utc(job.started_ns),
        seconds(limit),
        seconds(used),
        NONE if used is None or not limit else percent(used / limit),
        NONE if job.energy_joules is None else joules_words(job.energy_joules),
    )
