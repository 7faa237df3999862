"""Objects of a bucket: written, read and removed whole, with patience for a store that is busy or away."""

import hashlib
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

from crosswind.data.files import private
from crosswind.data.lake.damage import NO_ROOM
from crosswind.data.lake.objects.bounded import at_once, within
from crosswind.data.lake.objects.refusal import REFUSED, endpoint_of, reason_of, refusal, region_of
from crosswind.data.schema.errors import GoneError, MalformedError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress

if TYPE_CHECKING:  # a fifth of a second, and for those alone who have such a lake
    from pyarrow.fs import S3FileSystem

PIECE_BYTES = 1 << 22
CONNECT_SECONDS, STALLED_SECONDS = 5.0, 10.0
PATIENCE_SECONDS = 15.0  # for one object, over all attempts, and more by its size
BYTES_A_SECOND = 200_000.0
FIRST_PAUSE_SECONDS = 0.1
ONE_UPLOAD = re.compile("/[0-9a-f]{16}$")  # the folder of objects that were written together, and no others
KNOCK_SECONDS = 4.0  # for a store of which it is not known that it answers
AWAY_SECONDS = 2.0  # so long it is not asked again after it has not answered
CHECK_SECONDS = 8.0
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Listed:
    """An object as the store lists it: when it was written, in ns UTC, and its size."""

    key: str
    written_ns: int
    bytes: int


class Bucket:
    """The objects below an address."""

    def __init__(self, address: LakeAddress, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.address = address
        self.answers = False  # when it was asked last; while it does not, nobody waits for it for long
        self._patience_seconds = patience_seconds
        self._unanswered = (-AWAY_SECONDS, "")  # when it did not answer, and what was said then

    @cached_property
    def _files(self) -> "S3FileSystem":
        return self._connected(STALLED_SECONDS)

    def _connected(self, stalled_seconds: float) -> "S3FileSystem":
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415 - heavy

        address, endpoint = self.address, endpoint_of(self.address)
        return S3FileSystem(
            access_key=address.access_key,
            secret_key=address.secret_key,
            region=region_of(address),
            scheme=endpoint[0],
            endpoint_override=endpoint[1],
            connect_timeout=min(CONNECT_SECONDS, stalled_seconds),
            request_timeout=stalled_seconds,
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
            if (came := target.stat().st_size) < size:
                self._check_cut_off(key, came, size)
            return digest.hexdigest()

        if self._patiently(read, f"object {key} cannot be read", size) != checksum:
            raise MalformedError(f"lake {self.address}: object {key} is not what was stored: its SHA-256 differs")

    def _check_cut_off(self, key: str, came: int, size: int) -> None:
        """Raises: MalformedError where no more is there, ConnectionResetError where more is."""
        if self._files.get_file_info(self._place(key)).size == came:
            raise MalformedError(f"lake {self.address}: object {key} is cut off: it has {came} of {size} bytes")
        raise ConnectionResetError(f"{came} of {size} bytes came")

    def has(self, key: str) -> bool:
        """Return whether there is such an object, which no listing need show yet. Raises: UnavailableError."""
        info = self._patiently(
            lambda: self._files.get_file_info(self._place(key)), f"object {key} cannot be looked at", 0
        )
        return bool(info.is_file)

    def content(self, key: str) -> bytes | None:
        """Return the content of a small object; None where there is none. Raises: UnavailableError."""

        def read() -> bytes | None:
            try:
                with self._files.open_input_stream(self._place(key)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

        return self._patiently(read, f"object {key} cannot be read", 0)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects, those too that are gone already. Raises: UnavailableError."""
        by_folder: dict[str, set[str]] = defaultdict(set)
        for key in keys:
            by_folder[key.rpartition("/")[0]].add(key)
        at_once([partial(self._remove, folder, of_folder) for folder, of_folder in by_folder.items()])

    def _remove(self, folder: str, keys: set[str]) -> None:
        """Remove objects of a folder; Arrow would leave an object `FOLDER/` where it removes them one by one."""

        def remove() -> None:
            if ONE_UPLOAD.search(folder) and self._in_folder(folder) <= keys:
                with suppress(FileNotFoundError):
                    self._files.delete_dir(self._place(folder))
                return
            for key in keys:
                with suppress(FileNotFoundError):
                    self._files.delete_file(self._place(key))

        self._patiently(remove, f"object {min(keys)} cannot be removed", 0)

    def _in_folder(self, folder: str) -> set[str]:
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - as above

        entries = self._files.get_file_info(FileSelector(self._place(folder), recursive=True, allow_not_found=True))
        return {f"{folder}/{entry.base_name}" for entry in entries if entry.is_file}

    def listing(self) -> Iterator[Listed]:
        """Yield the objects that the store lists. Raises: UnavailableError."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - as above

        begin = f"{self._place('')}/".replace("//", "/")
        selector = FileSelector(begin.rstrip("/"), recursive=True, allow_not_found=True)
        for entry in self._patiently(lambda: self._files.get_file_info(selector), "it cannot be listed", 1 << 26):
            if entry.type == FileType.File:
                yield Listed(entry.path.removeprefix(begin), entry.mtime_ns, entry.size)

    def check(self, draft: Path) -> None:
        """Write, read and remove an object with the content of a file, within seconds. Raises: UnavailableError."""
        key, content = f".ready/{token_hex(8)}/object", draft.read_bytes()

        def act() -> None:
            self.put(key, draft)
            self.get(key, draft, size=len(content), checksum=hashlib.sha256(content).hexdigest())
            self.remove([key])

        try:
            within(CHECK_SECONDS, act)
        except TimeoutError as error:
            said = f"an object was not written, read and removed within {CHECK_SECONDS:.0f} s"
            raise self._refusal("it is too slow", said) from error
        except (GoneError, MalformedError) as error:
            raise self._refusal("it does not keep what is written", reason_of(error)) from error

    def _refusal(self, failure: str, reason: str) -> UnavailableError:
        self.answers = False
        return UnavailableError(refusal(self.address, failure, reason))

    def _place(self, key: str) -> str:
        return "/".join(part for part in (self.address.bucket, self.address.prefix, key) if part)

    def _patiently(self, work: Callable[[], Answer], failure: str, size: int) -> Answer:
        """Try until it works, is refused, or takes too long."""
        if not self.answers:
            self._knock()
        return self._tried(work, failure, self._patience_seconds + size / BYTES_A_SECOND)

    def _knock(self) -> None:
        """Ask for the names below the prefix, so that a wrong address is said at once, and in the store's words."""
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - as above

        since, said = self._unanswered
        if time.monotonic() - since < AWAY_SECONDS:
            raise UnavailableError(said)
        patience = min(KNOCK_SECONDS, self._patience_seconds)
        files = self._connected(patience)  # a process that ends waits for its requests

        def ask() -> None:
            with suppress(FileNotFoundError):  # nothing is below the prefix yet
                files.get_file_info(FileSelector(self._place("")))

        try:
            self._tried(ask, "it does not answer", patience)
        except UnavailableError as error:
            self._unanswered = time.monotonic(), str(error)
            raise

    def _tried(self, work: Callable[[], Answer], failure: str, patience_seconds: float) -> Answer:
        until, pause = time.monotonic() + patience_seconds, FIRST_PAUSE_SECONDS
        while True:
            try:
                answer = within(until - time.monotonic(), work)
            except OSError as error:
                self._check_worth_trying(error, failure, until - time.monotonic() - pause)
            else:
                self.answers = True
                return answer
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that not all come back at once
            pause = min(2 * pause, 5.0)

    def _check_worth_trying(self, error: OSError, failure: str, remaining_seconds: float) -> None:
        if error.errno in NO_ROOM:
            raise error  # of the disk here
        if isinstance(error, FileNotFoundError) and not REFUSED.search(str(error)):
            raise GoneError(f"lake {self.address}: {failure}: it is not there") from error
        if REFUSED.search(str(error)) or remaining_seconds < 0:
            raise self._refusal(failure, reason_of(error)) from error
