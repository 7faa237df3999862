"""The traces that a command names: files, or those of a stored run."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.arguments import local
from crosswind.cli.progress import Progress
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.data.store.traced_runs import traces_of_run
from crosswind.data.traces.cache import TraceCache
from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.load.load_traces import CACHE
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.models.traces.steps import without_last_step
from crosswind.settings import Settings


def traces_of(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> list[RankTrace]:
    """Return the traces by rank. Raises: MalformedError, UnavailableError, InvalidInputError, NotFoundError."""
    with Progress("reading traces"):
        traces = _stored(arguments, settings) if arguments.run else _read(files, arguments.workers, settings)
    return [without_last_step(trace) for trace in traces] if arguments.last_step else traces


def _read(files: Sequence[Path], workers: int, settings: Settings) -> list[RankTrace]:
    cache = TraceCache(settings.home / CACHE) if settings.home.is_dir() else None
    return read_traces(files, workers=workers, cache=cache)


def _stored(arguments: argparse.Namespace, settings: Settings) -> list[RankTrace]:
    with connect(arguments.server, settings=settings) as client:
        run_id = run_named(client, arguments.run).run_id
        return traces_of_run(local(client, "--last-step, what-if, merge of a run").store, run_id)
