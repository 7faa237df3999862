"""Objects of a bucket: written, read and removed whole, with patience for a store that is busy or away."""

import hashlib
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from crosswind.data.files import private
from crosswind.data.lake.objects.bounded import within
from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress

if TYPE_CHECKING:  # a fifth of a second, and for those alone who have such a lake
    from pyarrow.fs import S3FileSystem

PIECE_BYTES = 1 << 22
CONNECT_SECONDS, STALLED_SECONDS = 5.0, 10.0
PATIENCE_SECONDS = 30.0  # for one object, over all attempts, and more by its size
BYTES_A_SECOND = 200_000.0
FIRST_PAUSE_SECONDS = 0.1
REFUSED = re.compile(
    "ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|MISSING_AUTHENTICATION"
    "|HTTP status (30.|40[0-3])"
)
WHERE = re.compile("^When .*? in bucket '[^']*': ")  # which we say ourselves, and more shortly
EXPECTED = "expected an S3 endpoint, its region, an existing bucket, and rights to list, read, write and delete in it"
Answer = TypeVar("Answer")


class Bucket:
    """The objects below an address."""

    def __init__(self, address: LakeAddress, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.address = address
        self._patience_seconds = patience_seconds

    @cached_property
    def _files(self) -> "S3FileSystem":
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415 - heavy

        address, endpoint = self.address, _endpoint(self.address)
        return S3FileSystem(
            access_key=address.access_key,
            secret_key=address.secret_key,
            region=address.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
            scheme=endpoint[0],
            endpoint_override=endpoint[1],
            connect_timeout=CONNECT_SECONDS,
            request_timeout=STALLED_SECONDS,
            allow_delayed_open=True,  # one request for a small object
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1),  # we try again ourselves
        )

    def put(self, key: str, source: Path) -> None:
        """Write an object; nobody sees one that is not whole. Raises: UnavailableError, OSError for the source."""
        content = source.read_bytes()

        def write() -> None:
            with self._files.open_output_stream(self._place(key)) as stream:
                for first in range(0, len(content), PIECE_BYTES):
                    stream.write(content[first : first + PIECE_BYTES])

        self._patiently(write, f"object {key} cannot be written", len(content))

    def get(self, key: str, target: Path, *, size: int, checksum: str) -> None:
        """Write an object's content to a new file. Raises: UnavailableError, MalformedError for another content."""

        def read() -> str:
            digest = hashlib.sha256()
            with self._files.open_input_stream(self._place(key)) as stream, open(target, "wb", opener=private) as file:
                while piece := stream.read(PIECE_BYTES):
                    digest.update(piece)
                    file.write(piece)
            if target.stat().st_size < size:
                raise ConnectionResetError(f"{target.stat().st_size} of {size} bytes came")
            return digest.hexdigest()

        if self._patiently(read, f"object {key} cannot be read", size) != checksum:
            raise MalformedError(f"lake {self.address}: object {key} is not what was stored: its SHA-256 differs")

    def content(self, key: str) -> bytes | None:
        """Return the content of a small object; None where there is none. Raises: UnavailableError."""

        def read() -> bytes | None:
            try:
                with self._files.open_input_stream(self._place(key)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

        return self._patiently(read, f"object {key} cannot be read", 0)

    def remove(self, keys: Iterable[str]) -> list[str]:
        """Remove objects; return those that are gone. Raises: UnavailableError."""
        return [key for key in keys if self._removed(key)]

    def _removed(self, key: str) -> bool:
        def remove() -> bool:
            with suppress(FileNotFoundError):
                self._files.delete_file(self._place(key))
            return True

        return self._patiently(remove, f"object {key} cannot be removed", 0)

    def listing(self) -> Iterator[tuple[str, int]]:
        """Yield the keys of the objects that the store lists, and when each was written, ns UTC."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - as above

        begin = f"{self._place('')}/".replace("//", "/")
        selector = FileSelector(begin.rstrip("/"), recursive=True, allow_not_found=True)
        for entry in self._patiently(lambda: self._files.get_file_info(selector), "it cannot be listed", 1 << 26):
            if entry.type == FileType.File:
                yield entry.path.removeprefix(begin), entry.mtime_ns

    def check(self, draft: Path) -> None:
        """Write, read and remove an object with the content of a file. Raises: UnavailableError."""
        key, content = f".ready/{draft.name}", draft.read_bytes()
        try:
            self.put(key, draft)
            self.get(key, draft, size=len(content), checksum=hashlib.sha256(content).hexdigest())
            self.remove([key])
        except UnavailableError as error:
            raise UnavailableError(f"{error}; {EXPECTED}") from error

    def _place(self, key: str) -> str:
        return "/".join(part for part in (self.address.bucket, self.address.prefix, key) if part)

    def _patiently(self, work: Callable[[], Answer], failure: str, size: int) -> Answer:
        """Try until it works, is refused, or takes too long."""
        until = time.monotonic() + self._patience_seconds + size / BYTES_A_SECOND
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return within(until - time.monotonic(), work)
            except OSError as error:
                if REFUSED.search(str(error)):
                    raise UnavailableError(f"lake {self.address}: {failure}: {_reason(error)}") from error
                if isinstance(error, FileNotFoundError):
                    raise UnavailableError(f"lake {self.address}: {failure}: it is not there") from error
                if time.monotonic() + pause >= until:
                    raise UnavailableError(f"lake {self.address}: {failure}: {_reason(error)}") from error
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that not all come back at once
            pause = min(2 * pause, 5.0)


def _endpoint(address: LakeAddress) -> tuple[str | None, str | None]:
    """Return scheme and authority of the endpoint, None for those of the region."""
    if address.endpoint is not None:
        return address.scheme, address.endpoint
    url = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not url:
        return address.scheme, None
    parts = urlsplit(url)
    return address.scheme or parts.scheme, parts.netloc


def _reason(error: OSError) -> str:
    return f"{WHERE.sub('', str(error)):.300}"
