"""`crosswind trace FILE...`: the report of traced ranks, in words and tables, or as a page."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.page_file import page_file, write_file
from crosswind.cli.text.output import printable, say, say_answer
from crosswind.cli.text.trace_report import trace_text
from crosswind.cli.verbs.trace.reading import streamed
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.data.schema.answers.traces import TraceReport
from crosswind.data.schema.question import TRACED_NAMES
from crosswind.models.traces.report import trace_report
from crosswind.models.traces.report_what_if import report_and_what_ifs
from crosswind.settings import Settings


def execute(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the report. Raises: as `streamed`; UnavailableError when the page cannot be written."""
    if arguments.run and not arguments.last_step:  # a server answers, too
        answer, html = _of_run(arguments, settings)
    else:
        answer, html = _of_files(files, arguments, settings)
    say_answer(answer, trace_text, as_json=arguments.json)
    if arguments.html:
        write_file(arguments.html, html.encode())
        if not arguments.json:
            say("\n" + printable(f"report: {arguments.html}"))
    return 0


def _of_run(arguments: argparse.Namespace, settings: Settings) -> tuple[TraceReport, str]:
    """Return the report of a stored run, and its Trace page if that is asked for."""
    with connect(arguments.server, settings=settings) as client:
        run_id = run_named(client, arguments.run).run_id
        answer = client.trace(run_id, top=arguments.top or TRACED_NAMES)
        if not arguments.html:
            return answer, ""
        from crosswind.dashboards.pages.page import PageQuery  # noqa: PLC0415 - heavy
        from crosswind.dashboards.pages.runs.trace import PAGE  # noqa: PLC0415

        return answer, page_file(client, PAGE, PageQuery(run_id=run_id))


def _of_files(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> tuple[TraceReport, str]:
    """Return the report of files, and their page if that is asked for."""
    traces, top = streamed(files, arguments, settings), arguments.top or TRACED_NAMES
    if not arguments.html:
        return trace_report(traces, top=top), ""
    from crosswind.dashboards.trace_report import trace_page  # noqa: PLC0415 - heavy

    answer, without = report_and_what_ifs(traces, top=top)
    return answer, trace_page(answer, without)
