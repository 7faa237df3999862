"""The shipper: sends a spool's sealed segments to a server, oldest first, and deletes what the server has.

Its state is the files themselves: killed at any moment, it resumes where it was, and a segment sent twice is stored
once.
"""

import logging
import math
import threading
import time
from dataclasses import replace
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, ProjectError, UnavailableError
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.ship.backoff import LONGEST_SECONDS, Backoff
from crosswind.ingest.ship.client import Answer, Client
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipped import Shipped
from crosswind.ingest.ship.verdict import Verdict, reason_of, verdict_on
from crosswind.ingest.spool.abandoned import is_abandoned_in
from crosswind.ingest.spool.collected import collecting
from crosswind.ingest.spool.plain_file import NotPlainError
from crosswind.ingest.spool.quarantine import keep_within
from crosswind.ingest.spool.segment_reader import opened
from crosswind.ingest.spool.spool import batch_id, recover, sealed_segments

PATH = "/v1/ingest/batches"
MEDIA = "application/vnd.crosswind.segment"
LOOK_SECONDS = 1.0  # between looks at a spool that is empty
RECOVERY_SECONDS = 60.0
REJECTED_BYTES = 64 * 1024 * 1024
log = logging.getLogger("crosswind.ship")


class Shipper:
    """Sends one spool to one server."""

    def __init__(self, spool: Path, url: str, token: str | None = None) -> None:
        self.shipped = Shipped()
        self._spool = spool
        self._client = Client(url, token)
        self._backoff = Backoff()
        self._codings = list(packings())
        self._recovery_due = 0.0
        self._passed_over: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Ship present and coming segments until `stop` is set; runs in a thread of its own."""
        with collecting(self._spool):
            while not stop.is_set():
                try:
                    wait = self.ship_all(stop)
                except Exception:  # this loop is the outermost of its thread, and must outlive everything
                    log.exception("shipping from %s failed", self._spool)
                    wait = self._backoff.slowly()
                stop.wait(wait)

    def ship_all(self, stop: threading.Event | None = None) -> float:
        """Send every sealed segment. Return after how many seconds to look again."""
        self._recover()
        try:
            for path in sealed_segments(self._spool):
                if stop is not None and stop.is_set():
                    break
                if self._passed_over.get(path.name, 0.0) <= time.monotonic():
                    wait = self._ship(path)
                    if wait is not None:
                        return wait
            return LOOK_SECONDS
        finally:
            self._client.close()  # before the next segment the server would close it

    def _recover(self) -> None:
        """Seal from time to time what dead writers left open: ranks may die while the node's agent lives."""
        if time.monotonic() < self._recovery_due or not self._spool.is_dir():
            return
        self._recovery_due = time.monotonic() + RECOVERY_SECONDS
        try:
            for report in recover(self._spool, is_abandoned_in(self._spool, node_name())):
                log.warning("recovered %s: %d frames, %d torn bytes", report.path, report.frames, report.torn_bytes)
        except (ProjectError, OSError) as error:
            log.error("what dead writers left in %s stays there: %s", self._spool, error)

    def _ship(self, path: Path) -> float | None:
        """Send one segment. Return None when the next one may follow at once, else how long to wait."""
        try:
            identity, content = batch_id(path), _content(path)
        except NotPlainError as error:
            self._pass_over(path, str(error), seconds=math.inf)
            return None
        except InvalidInputError as error:  # a file of somebody else
            return self._reject(path, str(error))
        except (ProjectError, OSError) as error:
            if path.exists():  # else deleted for lack of space
                self._pass_over(path, str(error))
            return None
        try:
            answer = self._sent(path.name, identity, content)
        except UnavailableError as error:
            return self._wait(str(error))
        return self._settle(path, answer, verdict_on(answer, identity))

    def _sent(self, name: str, identity: str, content: bytes) -> Answer:
        coding = self._codings[0]
        body = pack(content, coding)
        headers = {"Content-Type": MEDIA, "Crosswind-Batch": identity, "Crosswind-Segment": name}
        answer = self._client.post(PATH, body, {**headers, "Content-Encoding": coding})
        self.shipped = replace(self.shipped, sent_bytes=self.shipped.sent_bytes + len(body))
        return answer

    def _settle(self, path: Path, answer: Answer, verdict: Verdict) -> float | None:
        match verdict:
            case Verdict.TAKEN:
                self._delete(path, answer)
                return None
            case Verdict.REFUSED:
                return self._reject(path, reason_of(answer))
            case Verdict.TOO_LARGE:
                self._pass_over(path, reason_of(answer))
                return None
            case Verdict.OTHER_CODING if self._take_other_coding(answer):
                return 0.0
            case Verdict.LATER:
                return self._wait(reason_of(answer), asked_seconds=answer.retry_after_seconds)
        self._wait(reason_of(answer))
        return self._backoff.slowly()

    def _delete(self, path: Path, answer: Answer) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._pass_over(path, f"the server has it, but it cannot be removed: {error.strerror}")
            return
        self._passed_over.pop(path.name, None)
        if self.shipped.problem is not None:
            log.warning("the server takes segments again")
        self._backoff.succeeded()
        self.shipped = replace(self.shipped, segments=self.shipped.segments + 1, problem=None)
        if answer.said.get("status") == "partial":
            log.warning("%s was not wholly understood, the server keeps it: %s", path.name, answer.said.get("problems"))

    def _reject(self, path: Path, reason: str) -> float | None:
        log.error("%s is kept as .rejected: %s", path, reason)
        try:
            path.rename(path.with_suffix(".rejected"))
            keep_within(self._spool.glob("*.rejected"), REJECTED_BYTES)
        except OSError as error:
            return self._wait(f"{path}: {error.strerror}")
        self.shipped = replace(self.shipped, rejected=self.shipped.rejected + 1)
        return None

    def _wait(self, reason: str, *, asked_seconds: float = 0.0) -> float:
        if reason != self.shipped.problem:
            log.warning("segments wait in %s: %s", self._spool, reason)
        self.shipped = replace(self.shipped, retries=self.shipped.retries + 1, problem=reason)
        return self._backoff.after_failure(asked_seconds)

    def _pass_over(self, path: Path, reason: str, *, seconds: float = LONGEST_SECONDS) -> None:
        log.error("%s is passed over for now: %s", path, reason)
        self._passed_over[path.name] = time.monotonic() + seconds

    def _take_other_coding(self, answer: Answer) -> bool:
        """Return whether there is another coding that both sides know."""
        others = [coding for coding in self._codings[1:] if coding in answer.codings]
        self._codings = others or self._codings
        return bool(others)


def _content(path: Path) -> bytes:
    with opened(path) as file:
        return file.read()
