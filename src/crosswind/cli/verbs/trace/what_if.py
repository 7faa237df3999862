"""`crosswind trace what-if`: the time of traced ranks if one cause of its losses were taken out."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.text.output import printable, say, say_json, table
from crosswind.cli.verbs.trace.reading import streamed
from crosswind.dashboards.wording import seconds
from crosswind.data.schema.answers.traces import TraceWhatIf
from crosswind.models.traces.report_what_if import FASTER, trace_what_ifs
from crosswind.settings import Settings

NANOSECONDS = 1e9
HEADINGS = ("without", "measured", "replayed", "S", "saved a step", "saved in the run")


def execute(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the replays, what saves most first."""
    traces = streamed(files, arguments, settings)
    faster = arguments.faster or FASTER
    answer = trace_what_ifs(traces, arguments.without or (), faster=faster, steps=arguments.steps)
    if arguments.json:
        say_json(answer)
        return 0
    width = len(HEADINGS) if arguments.steps else -1
    say(table(HEADINGS[:width], [_row(one)[:width] for one in answer]))
    for note in dict.fromkeys(note for one in answer for note in one.notes):
        say(printable(f"note: {note}"))
    return 0


def _row(one: TraceWhatIf) -> tuple[str, ...]:
    times = (seconds(ns / NANOSECONDS) for ns in (one.measured_ns, one.replayed_ns))
    saved = "" if one.saved_seconds is None else seconds(one.saved_seconds)
    return (one.cause, *times, f"{one.slowdown:.3f}", seconds(one.saved_ns_per_step / NANOSECONDS), saved)
