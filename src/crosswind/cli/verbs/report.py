"""`crosswind report`: the page of a run, a study or a cohort as one file."""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.arguments import configure_server
from crosswind.cli.page_file import page_file, write_file
from crosswind.cli.progress import Progress
from crosswind.cli.text.output import printable, say, say_json
from crosswind.client.connection import connect
from crosswind.client.protocol import Client
from crosswind.client.run_names import LATEST, RUN_HELP, run_named
from crosswind.data.schema.errors import InvalidInputError, NotFoundError, UnavailableError
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.dashboards.pages.page import Page, PageQuery

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PRINT_SECONDS = 120


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "name", nargs="?", default=LATEST, help=f"a run ({RUN_HELP}; default), a study or a cohort's id"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page here, as one file without requests")
    parser.add_argument("--pdf", type=Path, metavar="FILE", help="print the page here; needs Chromium on PATH")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Writes it."""
    if not arguments.html and not arguments.pdf:
        raise InvalidInputError("--html, --pdf: both are missing, expected a FILE for one of them")
    browser = _browser() if arguments.pdf else ""
    with connect(arguments.server, settings=settings) as client, Progress("writing the report"):
        html = _report(client, arguments.name)
        if arguments.html:
            write_file(arguments.html, html.encode())
        if arguments.pdf:
            write_file(arguments.pdf, _printed(html, browser))
    files = [str(file) for file in (arguments.html, arguments.pdf) if file]
    if arguments.json:
        say_json({"files": files})
    else:
        say(printable(f"report of {arguments.name}: {', '.join(files)}"))
    return 0


def _report(client: Client, name: str) -> str:
    """Return the first page that there is of this name."""
    for page, query in _candidates(client, name):
        with suppress(NotFoundError):
            return page_file(client, page, query)
    raise NotFoundError(
        f"{name[:200]!r} is no run, study or cohort: `crosswind runs` lists runs, `crosswind tune list` studies, "
        "and the Variability page cohorts"
    )


def _candidates(client: Client, name: str) -> Iterator[tuple["Page", "PageQuery"]]:
    from crosswind.dashboards.pages.causes import variability  # noqa: PLC0415
    from crosswind.dashboards.pages.page import PageQuery  # noqa: PLC0415
    from crosswind.dashboards.pages.runs import run  # noqa: PLC0415
    from crosswind.dashboards.pages.tuning import studies  # noqa: PLC0415

    with suppress(NotFoundError):
        yield run.PAGE, PageQuery(run_id=run_named(client, name).run_id)
    yield studies.PAGE, PageQuery({"study": name})
    yield variability.PAGE, PageQuery({"cohort": name})


def _browser() -> str:
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    raise UnavailableError(
        "--pdf: no Chromium on PATH: install it (`apt install chromium`, `dnf install chromium`), or write --html and "
        "print that in a browser"
    )


def _printed(html: str, browser: str) -> bytes:
    """Return the page as PDF; the page draws its figures before it is printed."""
    with tempfile.TemporaryDirectory(prefix="crosswind-") as folder:
        page, pdf = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html)
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root otherwise
        options = ["--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer", *as_root]
        command = [browser, *options, f"--user-data-dir={folder}/profile", f"--print-to-pdf={pdf}", page.as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=PRINT_SECONDS)
            return pdf.read_bytes()
        except (subprocess.SubprocessError, OSError) as error:
            raise UnavailableError(f"--pdf: {browser} printed nothing: {error}") from error
