"""`crosswind trace FILE...`: the report of traced ranks, in words and tables, or as a page."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.text.output import printable, say, say_answer
from crosswind.cli.text.trace_report import trace_text
from crosswind.cli.verbs.trace.reading import traces_of
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.data.schema.answers.traces import TraceReport
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.question import TRACED_NAMES
from crosswind.models.traces.report import trace_report
from crosswind.settings import Settings


def execute(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the report. Raises: as `traces_of`; UnavailableError when the page cannot be written."""
    answer = _answer(files, arguments, settings)
    say_answer(answer, trace_text, as_json=arguments.json)
    if arguments.html:
        _write(answer, arguments.html)
        if not arguments.json:
            say(printable(f"\nreport: {arguments.html}"))
    return 0


def _answer(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> TraceReport:
    top = arguments.top or TRACED_NAMES
    if arguments.run and not arguments.last_step:  # a server answers, too
        with connect(arguments.server, settings=settings) as client:
            return client.trace(run_named(client, arguments.run).run_id, top=top)
    return trace_report(traces_of(files, arguments, settings), top=top)


def _write(answer: TraceReport, path: Path) -> None:
    from crosswind.dashboards.trace_report import trace_page  # noqa: PLC0415 - heavy

    try:
        path.write_text(trace_page(answer), encoding="utf-8")
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be written: {error.strerror}") from error
