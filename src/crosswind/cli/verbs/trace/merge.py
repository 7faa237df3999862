"""`crosswind trace merge`: one file for Perfetto of all ranks on aligned clocks."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from crosswind.cli.text.output import printable, say, say_json
from crosswind.cli.verbs.trace.reading import streamed
from crosswind.dashboards.wording import count
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.traces.cache import TraceCache
from crosswind.data.traces.perfetto import write_perfetto
from crosswind.data.traces.trace import RankTrace
from crosswind.models.traces.several.merged import Merged
from crosswind.settings import Settings

ENDINGS = (".json", ".json.gz")
UNLIMITED = 1 << 62  # bytes, of what is kept for the second reading


def execute(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the file. Raises: InvalidInputError, UnavailableError."""
    output: Path | None = arguments.output
    if output is None or not output.name.endswith(ENDINGS):
        raise InvalidInputError(f"-o is {str(output or 'missing')!r:.200}, expected a file *.json or *.json.gz")
    traces = streamed(files, arguments, settings, every_capture=True)
    try:
        with TemporaryDirectory() as folder:
            kept = _Kept(TraceCache(Path(folder), UNLIMITED), output)
            merged = Merged.of(kept.first(traces))
            ranks = merged.clocks.ranks
            write_perfetto(merged.on_one_clock(kept.again(ranks)), ranks, output, merged.begin_ns)
    except OSError as error:
        raise UnavailableError(f"{error.filename or output}: {error.strerror or error}") from error
    if arguments.json:
        say_json({"file": str(output), "events": kept.events, "ranks": ranks, "clocks": merged.clocks.basis})
        return 0
    words = f"{count(len(ranks), 'rank')}, {count(kept.events, 'event')}, clocks by {merged.clocks.basis}"
    say(printable(f"{output}: {words}: open it in https://ui.perfetto.dev"))
    return 0


class _Kept:
    """Traces that are read twice, the second time by rank."""

    def __init__(self, cache: TraceCache, output: Path) -> None:
        self._cache, self._output, self.events = cache, output, 0

    def first(self, traces: Iterable[RankTrace]) -> Iterator[RankTrace]:
        """Yield the traces as they come, and keep them. Raises: OSError; InvalidInputError for the output itself."""
        for trace in traces:
            if self._output.exists() and Path(trace.source).exists() and self._output.samefile(trace.source):
                raise InvalidInputError(f"-o is {str(self._output)!r:.200}, a trace to merge; expected another file")
            self._cache.put(f"rank{trace.rank}", [trace])
            self.events += len(trace.events)
            yield trace

    def again(self, ranks: Sequence[int]) -> Iterator[RankTrace]:
        """Yield them by rank."""
        for rank in ranks:
            yield from self._cache.get(f"rank{rank}") or []
