"""The example store of a server: the lab's data, for pages that a reader's own store has too little for."""

import logging
import shutil
import tempfile
import weakref
from pathlib import Path
from threading import Lock

from crosswind.api.answer_cache import AnswerCache
from crosswind.api.background_answers import WAIT_SECONDS, BackgroundAnswers
from crosswind.client.local import Local
from crosswind.data.schema.errors import UnavailableError

_log = logging.getLogger("crosswind.example")


class Example:
    """Clients of the example, which is made when it is first asked for, and is public to all who may read pages.

    It has a temporary folder of its own, which goes with the process: nothing of it comes into the server's store.
    """

    def __init__(self, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._lock = Lock()
        self._client: Local | None = None
        self._page_client: Local | None = None

    @property
    def client(self) -> Local:
        """The client for programs, which wait for an answer. Raises: UnavailableError where there is no room for it."""
        with self._lock:
            if self._client is None:
                self._client = self._made()
            return self._client

    @property
    def page_client(self) -> Local:
        """The client for pages, which do not wait long. Raises: as `client`."""
        client = self.client
        with self._lock:
            if self._page_client is None:
                self._page_client = client.with_compute(
                    BackgroundAnswers(client.compute, wait_seconds=self._wait_seconds)
                )
            return self._page_client

    def _made(self) -> Local:
        from crosswind.data.samples.example import example_store  # noqa: PLC0415 - reads the lake's formats

        try:
            folder = Path(tempfile.mkdtemp(prefix="crosswind-example-"))  # its owner's alone
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            store = example_store(folder)
        except OSError as error:
            _log.warning("the example cannot be made: %s", error)
            raise UnavailableError(f"the example cannot be made: {error.strerror}") from error
        return Local(store, compute=AnswerCache())
