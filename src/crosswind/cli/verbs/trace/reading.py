"""The traces that a command names: files, or those of a stored run."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from crosswind.cli.arguments import local
from crosswind.cli.progress import Progress
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.data.traces.cache import TraceCache
from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.load.load_traces import CACHE
from crosswind.ingest.readers.traces.files import stream_traces
from crosswind.models.traces.several.ranks_read import by_rank
from crosswind.models.traces.steps import without_last_step
from crosswind.settings import Settings


def traces_of(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> list[RankTrace]:
    """Return the traces by rank. Raises: MalformedError, UnavailableError, InvalidInputError, NotFoundError."""
    return sorted(streamed(files, arguments, settings), key=by_rank)


def streamed(
    files: Sequence[Path], arguments: argparse.Namespace, settings: Settings, *, every_capture: bool = False
) -> Iterator[RankTrace]:
    """Yield the traces, each of which may be freed once the next one is asked for. Raises: as `traces_of`."""
    with Progress("reading traces"):
        for trace in (
            _stored(arguments, settings, every_capture=every_capture)
            if arguments.run
            else _read(files, arguments.workers, settings)
        ):
            yield without_last_step(trace) if arguments.last_step else trace


def _read(files: Sequence[Path], workers: int, settings: Settings) -> Iterator[RankTrace]:
    cache = TraceCache(settings.home / CACHE, settings.trace_cache_bytes) if settings.home.is_dir() else None
    return stream_traces(files, workers=workers, cache=cache)


def _stored(arguments: argparse.Namespace, settings: Settings, *, every_capture: bool) -> Iterator[RankTrace]:
    from crosswind.models.traces.several.probe_steps import ranks_of_run  # noqa: PLC0415 - heavy, and not for files

    with connect(arguments.server, settings=settings) as client:
        run_id = run_named(client, arguments.run).run_id
        store = local(client, "--last-step, what-if, merge of a run").store
        yield from ranks_of_run(store, run_id, every_capture=every_capture)
