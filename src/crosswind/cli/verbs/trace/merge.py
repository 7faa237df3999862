"""`crosswind trace merge`: one file for Perfetto of all ranks on aligned clocks."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.text.output import printable, say, say_json
from crosswind.cli.verbs.trace.reading import traces_of
from crosswind.dashboards.wording import count
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.traces.perfetto import write_perfetto
from crosswind.models.traces.clocks import aligned, clocks
from crosswind.models.traces.ranks import ranks_of
from crosswind.settings import Settings

ENDINGS = (".json", ".json.gz")


def execute(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the file. Raises: InvalidInputError, UnavailableError."""
    output: Path | None = arguments.output
    if output is None or not output.name.endswith(ENDINGS):
        raise InvalidInputError(f"-o is {str(output or 'missing')!r:.200}, expected a file *.json or *.json.gz")
    traces = traces_of(files, arguments, settings)
    offsets = clocks(traces)
    try:
        events = write_perfetto(aligned(traces, offsets), ranks_of(traces), output)
    except OSError as error:
        raise UnavailableError(f"{output}: {error.strerror or error}") from error
    if arguments.json:
        say_json({"file": str(output), "events": events, "ranks": offsets.ranks, "clocks": offsets.basis})
        return 0
    words = f"{count(len(traces), 'rank')}, {count(events, 'event')}, clocks by {offsets.basis}"
    say(printable(f"{output}: {words}: open it in https://ui.perfetto.dev"))
    return 0
