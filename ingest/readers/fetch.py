"""Download of a file from a web server for the time that it is read."""

import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError

FETCHED_LIMIT = 1 << 34  # bytes as sent: 16 GiB
BLOCK_BYTES = 1 << 20
TIMEOUT_SECONDS = 60.0


def is_url(text: str) -> bool:
    """Return whether the text is the URL of a web server."""
    return text.startswith(("http://", "https://"))


@contextmanager
def fetched(url: str, folder: Path, *, limit: int = FETCHED_LIMIT) -> Iterator[Path]:
    """Download the file of a URL to a place below `folder`, under the name that the URL ends in.

    Raises: MalformedError for another URL than a file's or a large file, UnavailableError.
    """
    name = _name_in(url)
    if name in ("", ".", ".."):
        raise MalformedError(f"{url:.200}: expected the URL of a file")
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=folder, prefix="fetched-"))
    try:
        _fetch(url, own / name, limit)
        yield own / name
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _name_in(url: str) -> str:
    try:
        return Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name
    except ValueError:
        return ""


def _fetch(url: str, path: Path, limit: int) -> None:
    size = 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer, path.open("wb") as file:  # noqa: S310
            while block := answer.read(BLOCK_BYTES):
                size += len(block)
                if size > limit:
                    raise MalformedError(f"{url:.200}: more than {limit} bytes")
                file.write(block)
            if size < (length := int(answer.headers["Content-Length"] or 0)):
                raise UnavailableError(f"{url:.200}: broke off after {size} of {length} bytes")
            os.fsync(file.fileno())
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", "") or error or type(error).__name__
        raise UnavailableError(f"{url:.200}: {reason}") from error
