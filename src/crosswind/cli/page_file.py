"""Pages as files, for the verbs that write some."""

from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.client.protocol import Client
from crosswind.data.schema.errors import UnavailableError

if TYPE_CHECKING:
    from crosswind.dashboards.pages.page import Page, PageQuery


def page_file(client: Client, page: "Page", query: "PageQuery") -> str:
    """Return a page of a store, or of a server, as one file. Raises: as the page's view."""
    from crosswind.client.local import Local  # noqa: PLC0415 - heavy, as what draws pages
    from crosswind.client.remote import Remote  # noqa: PLC0415
    from crosswind.dashboards.pages.report import report_of  # noqa: PLC0415

    if isinstance(client, Local):
        return report_of(client, page, query)
    if isinstance(client, Remote):
        return client.report(page.path.replace("{run_id}", query.run_id), query.parameters)
    raise TypeError(f"{type(client).__name__}: expected the client of a store or of a server")


def write_file(file: Path, content: bytes) -> None:
    """Write a file. Raises: UnavailableError."""
    try:
        file.write_bytes(content)
    except OSError as error:
        raise UnavailableError(f"{file}: cannot be written: {error.strerror}") from error
